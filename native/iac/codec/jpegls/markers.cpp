#include "iac/codec/jpegls/markers.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace iac {
namespace {

enum Marker : uint8_t { restart0 = 0xD0, end = 0xD9, scan = 0xDA, frame = 0xF7, presets = 0xF8 };

constexpr uint32_t usual_reset = 64;
constexpr uint8_t by_sample = 2;  // the interleave mode

class Markers {
 public:
  explicit Markers(Bytes stream) : rest_(stream) {}

  const char* trap() {
    rest_ = rest_.subspan(std::min<size_t>(2, rest_.size()));
    while (next_segment()) {
      if (code_ == frame && content_.size() > 0) bits_ = byte(0);
      if (code_ == presets && content_.size() == 11 && byte(0) == 1) {
        most_value_ = word(1);
        reset_ = word(9);
      }
      if (code_ == scan) {
        if (const char* trap = trap_of_scan()) return trap;
        pass_data();
      }
    }
    return nullptr;
  }

 private:
  uint8_t byte(size_t at) const { return std::to_integer<uint8_t>(content_[at]); }
  uint32_t word(size_t at) const { return byte(at) * 256U + byte(at + 1); }

  // Reads a marker and what belongs to it; false behind the last one.
  bool next_segment() {
    size_t at = 0;
    while (at < rest_.size() && rest_[at] == std::byte{0xFF}) ++at;
    if (at == 0 || rest_.size() < at + 3) return false;
    code_ = std::to_integer<uint8_t>(rest_[at]);
    const size_t length =
        std::to_integer<size_t>(rest_[at + 1]) * 256 + std::to_integer<size_t>(rest_[at + 2]);
    if (code_ == end || length < 2 || length > rest_.size() - at - 1) return false;
    content_ = rest_.subspan(at + 3, length - 2);
    rest_ = rest_.subspan(at + 1 + length);
    return true;
  }

  const char* trap_of_scan() {
    const size_t components = content_.empty() ? 0 : byte(0);
    if (content_.size() != components * 2 + 4) return nullptr;
    const uint8_t mode = byte(components * 2 + 2);
    if (scans_++ == 0) {
      components_ = components;
      mode_ = mode;
    }
    if (components != components_ || mode != mode_) return "its scans are of different kinds";
    if (most_value_ != 0 && most_value_ != (1U << bits_) - 1) {
      return "its largest value is not that of its bits a sample";
    }
    if (mode == by_sample && reset_ != 0 && reset_ != usual_reset) {
      return "its samples are interleaved and have a reset value of their own";
    }
    return nullptr;
  }

  // Passes over a scan's data, in which no byte of ones is followed by a bit that is set, and over
  // the restart markers in it.
  void pass_data() {
    while (!rest_.empty()) {
      const auto* found =
          static_cast<const std::byte*>(std::memchr(rest_.data(), 0xFF, rest_.size()));
      rest_ = rest_.subspan(found == nullptr ? rest_.size() : found - rest_.data());
      if (rest_.size() < 2) return;
      const auto next = std::to_integer<uint8_t>(rest_[1]);
      if (next >= 0x80 && (next & 0xF8) != restart0) return;
      rest_ = rest_.subspan(1);
    }
  }

  Bytes rest_, content_;
  uint8_t code_ = 0, mode_ = 0;
  uint32_t bits_ = 0, most_value_ = 0, reset_ = 0;
  size_t components_ = 0;
  uint64_t scans_ = 0;
};

}  // namespace

const char* trap_in_jpegls(Bytes stream) { return Markers(stream).trap(); }

}  // namespace iac
