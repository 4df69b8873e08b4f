#include "iac/image.h"

#include <array>

namespace iac {

static constexpr std::array<std::string_view, pixel_types> names{
    "uint8",  "int8",  "uint16", "int16", "float16", "float32",
    "uint32", "int32", "uint64", "int64", "float64"};

std::string_view name_of(PixelType type) { return names[static_cast<size_t>(type)]; }

std::optional<PixelType> pixel_type(std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<PixelType>(i);
  }
  return std::nullopt;
}

std::string describe(const ImageShape& shape) {
  std::string text = std::to_string(shape.height) + "x" + std::to_string(shape.width);
  if (shape.channels > 1) text += "x" + std::to_string(shape.channels);
  return text + " " + std::string(name_of(shape.type));
}

}  // namespace iac
