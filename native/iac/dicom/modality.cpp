#include "iac/dicom/modality.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "iac/dicom/value.h"
#include "iac/error.h"
#include "iac/json_text.h"

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

// The item of a frame in functional groups (PS3.3 C.7.6.16): one for each, or one for all.
std::optional<std::string_view> group_of(const Header& header, uint32_t tag, size_t frame) {
  const auto groups = header.find(tag);
  if (!groups || !is_sequence(*groups)) return std::nullopt;
  return item_of(*groups, tag == shared_functional_groups ? 0 : frame);
}

// An element of the macros that such a group consists of.
std::optional<std::string_view> element_in(std::optional<std::string_view> group, uint32_t tag) {
  std::optional<std::string_view> found;
  if (!group) return found;
  JsonText json(*group);
  json.members([&](std::string_view) {
    const std::string_view macro = json.value();
    const auto item = is_sequence(macro) ? item_of(macro, 0) : std::nullopt;
    const auto element = item ? element_of(*item, tag) : std::nullopt;
    if (element) found = element;
  });
  return found;
}

// The elements that hold for one frame: those of its functional groups over those of the data set.
class FrameElements {
 public:
  FrameElements(const Header& header, size_t frame)
      : header_(header),
        frame_(frame),
        own_(group_of(header, per_frame_functional_groups, frame)),
        shared_(group_of(header, shared_functional_groups, frame)) {}

  std::optional<std::string_view> find(uint32_t tag) const {
    if (const auto element = element_in(own_, tag)) return element;
    if (const auto element = element_in(shared_, tag)) return element;
    return header_.find(tag);
  }

  // Throws Error where one that matters is not what its VR says, and no other stands over it.
  void require_whole() const {
    for (const auto& path : header_.broken()) {
      const auto* const name = std::find_if(
          std::begin(needed), std::end(needed),
          [tag = relevant_tag(path)](const auto& element) { return element.first == tag; });
      if (name == std::end(needed)) continue;
      const uint32_t tag = name->first;
      const bool is_replaced = (path[0] != per_frame_functional_groups && element_in(own_, tag)) ||
                               (!is_group(path[0]) && element_in(shared_, tag));
      if (is_replaced) continue;
      throw bad("its " + std::string(name->second) +
                " is not what its VR says, so it cannot be used");
    }
  }

 private:
  static constexpr std::pair<uint32_t, std::string_view> needed[] = {
      {rescale_intercept, "Rescale Intercept (0028,1052)"},
      {rescale_slope, "Rescale Slope (0028,1053)"},
      {modality_lut_sequence, "Modality LUT Sequence (0028,3000)"},
      {pixel_value_transformation_sequence, "Pixel Value Transformation Sequence (0028,9145)"},
      {shared_functional_groups, "Shared Functional Groups Sequence (5200,9229)"},
      {per_frame_functional_groups, "Per-frame Functional Groups Sequence (5200,9230)"}};

  static bool is_group(uint32_t tag) {
    return tag == shared_functional_groups || tag == per_frame_functional_groups;
  }

  // That of the element, or of the macro or the whole group that is broken; 0 for what is of other
  // frames. A path is group, its item, macro, its item, element.
  uint32_t relevant_tag(const std::vector<uint32_t>& path) const {
    if (!is_group(path[0])) return path[0];
    const size_t item = path[0] == shared_functional_groups ? 0 : frame_;
    if ((path.size() > 1 && path[1] != item) || (path.size() > 3 && path[3] != 0)) return 0;
    return path[std::min<size_t>((path.size() - 1) / 2, 2) * 2];
  }

  const Header& header_;
  size_t frame_;
  std::optional<std::string_view> own_, shared_;
};

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
  const FrameElements elements(header, frame);
  elements.require_whole();
  if (const auto sequence = elements.find(modality_lut_sequence)) {
    if (!is_sequence(*sequence)) throw bad("ModalityLUTSequence is no sequence");
    if (const auto item = item_of(*sequence, 0)) {
      read_table(*item);
      return;
    }
  }
  const auto slope = elements.find(rescale_slope), intercept = elements.find(rescale_intercept);
  if (!slope || !intercept) return;
  kind_ = Kind::rescale;
  slope_ = number(*slope, "RescaleSlope");
  intercept_ = number(*intercept, "RescaleIntercept");
}

void ModalityLut::read_table(std::string_view item) {
  const auto descriptor = element_of(item, lut_descriptor), data = element_of(item, lut_data);
  if (!descriptor || !data) throw bad("ModalityLUTSequence has no LUTDescriptor or LUTData");
  const auto says = value_numbers(*descriptor);
  const auto is_word = [](double value) {
    return std::abs(value) <= 0xFFFF && value == std::floor(value);
  };
  const bool valid =
      says.size() == 3 && is_word(says[0]) && is_word(says[1]) && (says[2] == 8 || says[2] == 16);
  if (!valid) throw bad("LUTDescriptor is not one of three numbers that PS3.3 C.11.1.1 allows");
  const int entries = static_cast<int>(says[0]) & 0xFFFF;  // a large one may be read as signed
  const size_t count = entries == 0 ? 0x10000 : static_cast<size_t>(entries);
  kind_ = Kind::table;
  first_ = static_cast<int>(says[1]);
  bits_ = static_cast<int>(says[2]);
  table_.resize(count);
  if (const auto bytes = value_bytes(*data)) {
    const bool wide = bytes->size() >= count * 2;
    if (!wide && (bits_ != 8 || bytes->size() < count)) throw bad("LUTData is too short");
    for (size_t i = 0; i < count; ++i) {
      table_[i] = wide ? load<uint16_t>(bytes->data() + i * 2) : static_cast<uint8_t>((*bytes)[i]);
    }
  } else {
    const auto values = value_numbers(*data);
    if (values.size() < count) throw bad("LUTData is too short");
    for (size_t i = 0; i < count; ++i) {
      if (!(values[i] >= 0 && values[i] <= 0xFFFF)) {
        throw bad("LUTData has a value of more than 16 bits");
      }
      table_[i] = static_cast<uint16_t>(values[i]);
    }
  }
  if (*std::max_element(table_.begin(), table_.end()) >> bits_ != 0) {
    throw bad("LUTData has a value of more than " + std::to_string(bits_) + " bits");
  }
}

void ModalityLut::apply(const ImageShape& image, const std::byte* pixels, float* out) const {
  const uint64_t count = image.samples();
  const auto integers = [&]<class T>(T) {
    if (kind_ != Kind::table) return rescale<T>(pixels, count, slope_, intercept_, out);
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
      if (kind_ != Kind::table) return rescale<float>(pixels, count, slope_, intercept_, out);
      break;
    case PixelType::float64:
      if (kind_ != Kind::table) return rescale<double>(pixels, count, slope_, intercept_, out);
      break;
    case PixelType::float16:
      break;
  }
  throw Error(Error::Kind::codec, "pixels of " + std::string(name_of(image.type)) +
                                      " have no modality LUT, use iac_image");
}

}  // namespace iac::dicom
