// Where the bytes of a pack come from. Everything that reads a pack reads through here, into
// memory that the caller owns, so a file that shrinks or fails is an error and never a crash.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "iac/bytes.h"

namespace iac {

class Source {
 public:
  virtual ~Source() = default;

  uint64_t size() const { return size_; }

  // Two sources with the same identity hold the same bytes.
  const std::string& identity() const { return identity_; }

  // Fills every piece, one behind the other, from `offset` on. Any number of threads at once.
  // Throws Error when the source ends before or cannot be read.
  void read_at(uint64_t offset, std::span<const MutableBytes> pieces) const;
  void read_at(uint64_t offset, MutableBytes out) const { read_at(offset, {&out, 1}); }

 protected:
  Source(uint64_t size, std::string identity) : size_(size), identity_(std::move(identity)) {}

  // One attempt: the number of bytes read, which may be fewer than asked for, 0 at the end, or a
  // negative errno.
  virtual int64_t read_some(uint64_t offset, std::span<const MutableBytes> pieces) const = 0;

 private:
  uint64_t size_;
  std::string identity_;
};

// A file of this machine, read by position through one descriptor: it stays the file that was
// opened when another one takes its name.
class LocalSource : public Source {
 public:
  static std::shared_ptr<LocalSource> open(const std::string& path);
  ~LocalSource() override;
  int descriptor() const { return descriptor_; }

 protected:
  int64_t read_some(uint64_t offset, std::span<const MutableBytes> pieces) const override;

 private:
  LocalSource(int descriptor, uint64_t size, std::string identity)
      : Source(size, std::move(identity)), descriptor_(descriptor) {}
  int descriptor_;
};

// What identity() of the file now at `path` would be; empty when there is none.
std::string local_identity(const std::string& path);

}  // namespace iac
