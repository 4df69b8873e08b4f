// Memory that a thread decodes into again and again, record behind record.
#pragma once

#include <algorithm>
#include <memory>

#include "iac/codec/codec.h"

namespace iac {

class Scratch final : public Target {
 public:
  Scratch() : Target(nullptr, 0) {}

  // Forgets what was written.
  void restart() { used_ = 0; }

  // The next record may take at most `limit` bytes.
  void limit_record(uint64_t limit) {
    limit_ = limit;
    point();
  }

  bool grow(size_t needed) override {
    if (needed <= capacity_) return true;
    if (needed > limit_) return false;
    const size_t larger = used_ + needed + needed / 2;
    auto fresh = std::make_unique_for_overwrite<std::byte[]>(lead + larger);
    if (size_ > 0) std::memcpy(fresh.get() + lead, owned_.get() + lead, size_);
    owned_ = std::move(fresh);
    size_ = larger;
    point();
    return true;
  }

  // The next record lies behind `size` more bytes.
  void advance(size_t size) {
    used_ += size;
    point();
  }

  // Ends the use of memory that only an unusual record needed.
  void release_if_large() {
    if (size_ <= kept_size) return;
    owned_.reset();
    size_ = used_ = 0;
    point();
  }

  Bytes written() const { return used_ > 0 ? Bytes{owned_.get() + lead, used_} : Bytes{}; }

 private:
  // In front of the first record, so that it is aligned to 8 bytes and no more: rows that are to 16
  // or 32 libjpeg-turbo writes past the processor's caches, which slows down copying them.
  static constexpr size_t lead = 8;
  static constexpr size_t kept_size = size_t{16} << 20;

  void point() {
    data_ = owned_ ? owned_.get() + lead + used_ : nullptr;
    capacity_ = std::min<uint64_t>(size_ - used_, limit_);
  }

  std::unique_ptr<std::byte[]> owned_;
  size_t size_ = 0, used_ = 0;
  uint64_t limit_ = 0;
};

}  // namespace iac
