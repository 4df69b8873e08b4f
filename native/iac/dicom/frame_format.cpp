#include "iac/dicom/frame_format.h"

#include <string>
#include <string_view>

#include "iac/dicom/samples.h"
#include "iac/error.h"

namespace iac::dicom {
namespace {

using Encoding = FrameFormat::Encoding;
using Colours = FrameFormat::Colours;

Error bad(const std::string& reason) { return {Error::Kind::pack, reason}; }

// PS3.5 A.1, A.2, A.5, A.3 and A.4.2.
std::optional<Encoding> encoding_of(std::string_view syntax) {
  if (syntax == "1.2.840.10008.1.2" || syntax == "1.2.840.10008.1.2.1" ||
      syntax == "1.2.840.10008.1.2.1.99") {
    return Encoding::little_endian;
  }
  if (syntax == "1.2.840.10008.1.2.2") return Encoding::big_endian;
  if (syntax == "1.2.840.10008.1.2.5") return Encoding::rle;
  return std::nullopt;
}

int number(const std::optional<TableValues>& column, const char* name, int64_t row, int low,
           int high) {
  const auto value = column ? column->integer(row) : std::nullopt;
  if (!value) throw bad(std::string(name) + " is missing");
  if (*value < low || *value > high) {
    throw bad(std::string(name) + " is " + std::to_string(*value) + " of a frame that has " +
              std::to_string(low) + " to " + std::to_string(high));
  }
  return static_cast<int>(*value);
}

}  // namespace

FrameFormats::FrameFormats(const Table& index, std::span<const int64_t> rows)
    : syntax_(TableValues::find(index, "source_transfer_syntax", rows)),
      interpretation_(TableValues::find(index, "photometric_interpretation", rows)),
      planar_(TableValues::find(index, "planar_configuration", rows)),
      stored_(TableValues::find(index, "bits_stored", rows)) {}

std::optional<FrameFormat> FrameFormats::find(int64_t row, const ImageShape& image,
                                              int bits_allocated) const {
  const auto syntax = syntax_ ? syntax_->bytes(row) : std::nullopt;
  const auto encoding = syntax ? encoding_of(*syntax) : std::nullopt;
  if (!encoding) return std::nullopt;
  FrameFormat format{.image = image, .encoding = *encoding};
  if (image.channels != 1 && image.channels != 3) {
    throw bad("samples_per_pixel is " + std::to_string(image.channels));
  }
  if (image.channels > 1) {
    format.planar = number(planar_, "planar_configuration", row, 0, 1) == 1;
  }
  const bool are_bits = bits_allocated == 1;
  if (are_bits && format.encoding == Encoding::rle)
    throw bad("bits_allocated is 1 of an RLE frame");
  format.bits_allocated = format.bits_stored = bits_allocated;
  if (is_integer(image.type)) {
    format.bits_stored = number(stored_, "bits_stored", row, 1, bits_allocated);
  }
  const auto interpretation = interpretation_ ? interpretation_->bytes(row) : std::nullopt;
  if (!interpretation) throw bad("photometric_interpretation is missing");
  if (interpretation == "YBR_FULL" || interpretation == "YBR_FULL_422") {
    const bool halved = interpretation == "YBR_FULL_422" && format.encoding != Encoding::rle;
    format.colours = halved ? Colours::ybr_full_422 : Colours::ybr_full;
    const bool fits = image.channels == 3 && image.type == PixelType::uint8 && !are_bits &&
                      !(halved && image.samples() / 3 % 2 != 0);
    if (!fits) throw bad("pixels of " + std::string(*interpretation) + " are " + describe(image));
  }
  return format;
}

}  // namespace iac::dicom
