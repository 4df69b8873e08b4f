#include "iac/dicom/modality.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "iac/dicom/value.h"
#include "iac/error.h"

namespace iac::dicom {
namespace {

constexpr uint32_t rescale_intercept = 0x00281052, rescale_slope = 0x00281053,
                   modality_lut_sequence = 0x00283000, lut_descriptor = 0x00283002,
                   lut_data = 0x00283006, pixel_value_transformation_sequence = 0x00289145,
                   shared_functional_groups = 0x52009229, per_frame_functional_groups = 0x52009230;

Error bad(const std::string& reason) { return {Error::Kind::pack, reason}; }

// The finite number of an element.
double number(std::string_view element, const char* keyword) {
  const auto values = value_numbers(element);
  if (values.size() == 1 && std::isfinite(values[0])) return values[0];
  throw bad(std::string(keyword) + " is not one number");
}

// The Pixel Value Transformation of a frame, as the item of its sequence.
std::optional<std::string_view> transformation(const Header& header, size_t frame) {
  for (const uint32_t tag : {per_frame_functional_groups, shared_functional_groups}) {
    const auto groups = header.find(tag);
    if (!groups) continue;
    const auto group = item_of(*groups, tag == shared_functional_groups ? 0 : frame);
    const auto sequence =
        group ? element_of(*group, pixel_value_transformation_sequence) : std::nullopt;
    if (sequence) return item_of(*sequence, 0);
  }
  return std::nullopt;
}

template <class T>
void rescale(const std::byte* pixels, uint64_t count, double slope, double intercept, float* out) {
  for (uint64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(static_cast<double>(load<T>(pixels + i * sizeof(T))) * slope +
                                intercept);
  }
}

// Values before the first and behind the last of the table have its first and its last.
template <class T>
void look_up(const std::byte* pixels, uint64_t count, const std::vector<uint16_t>& table,
             double first, float* out) {
  const auto last = static_cast<double>(table.size() - 1);
  for (uint64_t i = 0; i < count; ++i) {
    // Doubles are exact as far as the table reaches.
    const double at = static_cast<double>(load<T>(pixels + i * sizeof(T))) - first;
    out[i] = table[static_cast<size_t>(std::clamp(at, 0.0, last))];
  }
}

}  // namespace

ModalityLut::ModalityLut(const Header& header, size_t frame) {
  if (const auto sequence = header.find(modality_lut_sequence)) {
    if (const auto item = item_of(*sequence, 0)) {
      read_table(*item);
      return;
    }
  }
  auto slope = header.find(rescale_slope), intercept = header.find(rescale_intercept);
  if (!slope || !intercept) {
    const auto item = transformation(header, frame);
    if (!item) return;
    slope = element_of(*item, rescale_slope);
    intercept = element_of(*item, rescale_intercept);
    if (!slope || !intercept) return;
  }
  slope_ = number(*slope, "RescaleSlope");
  intercept_ = number(*intercept, "RescaleIntercept");
}

void ModalityLut::read_table(std::string_view item) {
  const auto descriptor = element_of(item, lut_descriptor), data = element_of(item, lut_data);
  if (!descriptor || !data) throw bad("ModalityLUTSequence has no LUTDescriptor or LUTData");
  const auto says = value_numbers(*descriptor);
  const bool valid = says.size() == 3 && std::abs(says[0]) <= 0xFFFF &&
                     std::abs(says[1]) <= 0xFFFF && (says[2] == 8 || says[2] == 16);
  if (!valid) throw bad("LUTDescriptor is not one of three numbers that PS3.3 C.11.1.1 allows");
  const int entries = static_cast<int>(says[0]) & 0xFFFF;  // a large one may be read as signed
  const size_t count = entries == 0 ? 0x10000 : static_cast<size_t>(entries);
  first_ = says[1];
  table_.resize(count);
  if (const auto bytes = value_bytes(*data)) {
    const bool wide = bytes->size() >= count * 2;
    if (!wide && (says[2] != 8 || bytes->size() < count)) throw bad("LUTData is too short");
    for (size_t i = 0; i < count; ++i) {
      table_[i] = wide ? load<uint16_t>(bytes->data() + i * 2) : static_cast<uint8_t>((*bytes)[i]);
    }
    return;
  }
  const auto values = value_numbers(*data);
  if (values.size() < count) throw bad("LUTData is too short");
  for (size_t i = 0; i < count; ++i) {
    if (!(std::abs(values[i]) <= 0xFFFF)) throw bad("LUTData has a value of more than 16 bits");
    table_[i] = static_cast<uint16_t>(static_cast<int>(values[i]));
  }
}

void ModalityLut::apply(const ImageShape& image, const std::byte* pixels, float* out) const {
  const uint64_t count = image.samples();
  const auto integers = [&]<class T>(T) {
    if (table_.empty()) return rescale<T>(pixels, count, slope_, intercept_, out);
    look_up<T>(pixels, count, table_, first_, out);
  };
  switch (image.type) {
    case PixelType::uint8:
      return integers(uint8_t{});
    case PixelType::int8:
      return integers(int8_t{});
    case PixelType::uint16:
      return integers(uint16_t{});
    case PixelType::int16:
      return integers(int16_t{});
    case PixelType::uint32:
      return integers(uint32_t{});
    case PixelType::int32:
      return integers(int32_t{});
    case PixelType::uint64:
      return integers(uint64_t{});
    case PixelType::int64:
      return integers(int64_t{});
    case PixelType::float32:
      if (table_.empty()) return rescale<float>(pixels, count, slope_, intercept_, out);
      break;
    case PixelType::float64:
      if (table_.empty()) return rescale<double>(pixels, count, slope_, intercept_, out);
      break;
    case PixelType::float16:
      break;
  }
  throw Error(Error::Kind::codec, "pixels of " + std::string(name_of(image.type)) +
                                      " have no modality LUT, use iac_image");
}

}  // namespace iac::dicom
