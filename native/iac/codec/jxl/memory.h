#pragma once

#include <jxl/memory_manager.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace iac::jxl {

// The memory that a decoder may have: a few bytes of a payload can claim frames far larger than the
// image, and any number of them. libjxl fails in good order where it gets none.
// Outlives the decoder. For one thread.
class Memory {
 public:
  JxlMemoryManager manager() { return {this, &allocate, &release}; }

  // Once the header is known. The bound is far above what images need that encoders write.
  void allow_image(uint64_t width, uint64_t height) {
    // Rows are padded, and for a narrow image this is most of them.
    const uint64_t pixels = (width + padding) * (height + padding);  // sides are below 2^31
    most_ = pixels > (UINT64_MAX >> 8) ? UINT64_MAX >> 1 : besides + pixels * bytes_a_pixel;
  }

 private:
  // Four channels of four bytes a sample: the image, four frames kept for others, work space.
  static constexpr uint64_t bytes_a_pixel = 128;
  static constexpr uint64_t besides = uint64_t{16} << 20;
  static constexpr uint64_t padding = 64;
  // What may be asked for in all, as time goes by, is this much more. It bounds the time.
  static constexpr uint64_t turnover = 16;
  // In front of each block is its size.
  static constexpr size_t front = alignof(std::max_align_t);
  static_assert(front >= sizeof(size_t));

  static void* allocate(void* opaque, size_t size) {
    auto& memory = *static_cast<Memory*>(opaque);
    if (size > memory.most_ - memory.held_) return nullptr;
    if (size > memory.most_ - memory.asked_ / turnover) return nullptr;
    auto* block = static_cast<std::byte*>(std::malloc(size + front));
    if (block == nullptr) return nullptr;
    memory.held_ += size;
    memory.asked_ += size;
    std::memcpy(block, &size, sizeof size);
    return block + front;
  }

  static void release(void* opaque, void* address) {
    if (address == nullptr) return;
    auto* block = static_cast<std::byte*>(address) - front;
    size_t size = 0;
    std::memcpy(&size, block, sizeof size);
    static_cast<Memory*>(opaque)->held_ -= size;
    std::free(block);
  }

  uint64_t most_ = besides;
  uint64_t held_ = 0;   // now
  uint64_t asked_ = 0;  // ever
};

}  // namespace iac::jxl
