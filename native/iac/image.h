// What image codecs decode to and encode from: rows of pixels one behind the other, channels
// interleaved, native byte order.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace iac {

enum class PixelType : uint8_t {
  uint8,
  int8,
  uint16,
  int16,
  float16,
  float32,
  uint32,
  int32,
  uint64,
  int64,
  float64,
};
constexpr int pixel_types = static_cast<int>(PixelType::float64) + 1;

// NumPy's name of the type.
std::string_view name_of(PixelType type);
std::optional<PixelType> pixel_type(std::string_view name);

constexpr uint64_t size_of(PixelType type) {
  switch (type) {
    case PixelType::uint8:
    case PixelType::int8:
      return 1;
    case PixelType::uint32:
    case PixelType::int32:
    case PixelType::float32:
      return 4;
    case PixelType::uint64:
    case PixelType::int64:
    case PixelType::float64:
      return 8;
    default:
      return 2;
  }
}

struct ImageShape {
  uint32_t height = 0, width = 0;
  uint32_t channels = 0;  // 1 gray, 2 gray and alpha, 3 RGB, 4 RGB and alpha; 0: no image
  PixelType type = PixelType::uint8;

  // Sides have 32 bits and channels are few: it saturates instead of overflowing.
  uint64_t samples() const {
    const uint64_t pixels = uint64_t{height} * width;
    return pixels > UINT64_MAX / 64 ? UINT64_MAX / 64 : pixels * channels;
  }
  uint64_t bytes() const { return samples() * size_of(type); }
  auto operator<=>(const ImageShape&) const = default;
};

// "512x512x3 uint16", for errors.
std::string describe(const ImageShape& shape);

}  // namespace iac
