// Memory for results. Large blocks are recycled, and the largest lie in huge pages: copying into
// memory the kernel has just handed out is several times slower than into memory used before.
#pragma once

#include <memory>

#include "iac/bytes.h"

namespace iac {

class Block;

// Owned memory that copies of the Buffer share. Uninitialised when allocated; nobody may write
// once it was handed out.
class Buffer {
 public:
  Buffer() = default;

  // Room for `capacity` bytes; what is never written is never committed. Throws std::bad_alloc.
  static Buffer allocate(uint64_t capacity);

  std::byte* data() const;
  size_t size() const { return size_; }
  uint64_t capacity() const;
  // Says how many bytes are in use.
  void set_size(size_t size);
  MutableBytes bytes() const { return {data(), size_}; }

 private:
  std::shared_ptr<Block> block_;
  size_t size_ = 0;
};

}  // namespace iac
