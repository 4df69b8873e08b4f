// Big-endian integers from a payload, never past its end.
#pragma once

#include <string>

#include "iac/bytes.h"
#include "iac/error.h"

namespace iac::j2k {

// A payload that is damaged, or that cannot be decoded.
inline Error bad(const std::string& reason) { return {Error::Kind::codec, "jpeg2000: " + reason}; }

class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }

  uint32_t u8() { return number(1); }
  uint32_t u16() { return number(2); }
  uint32_t u32() { return number(4); }
  uint64_t u64() {
    const uint64_t high = u32();
    return high << 32 | u32();
  }

  Bytes take(size_t count) {
    if (count > left()) throw bad("payload is cut");
    const Bytes taken = bytes_.subspan(position_, count);
    position_ += count;
    return taken;
  }

 private:
  uint32_t number(size_t count) {
    uint32_t value = 0;
    for (const std::byte byte : take(count)) value = value << 8 | std::to_integer<uint32_t>(byte);
    return value;
  }

  Bytes bytes_;
  size_t position_ = 0;
};

}  // namespace iac::j2k
