#include "iac/dicom/frame_format.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "iac/dicom/samples.h"
#include "iac/error.h"

namespace iac::dicom {
namespace {

using Encoding = FrameFormat::Encoding;
using Colours = FrameFormat::Colours;

Error bad(const std::string& reason) { return {Error::Kind::pack, reason}; }

struct Syntax {
  std::string_view uid;
  Encoding encoding;
};

// PS3.5 A.1, A.2, A.5, A.3, and of A.4 RLE, JPEG, JPEG-LS, JPEG 2000 and HTJ2K.
constexpr Syntax syntaxes[] = {
    {"1.2.840.10008.1.2", Encoding::little_endian},
    {"1.2.840.10008.1.2.1", Encoding::little_endian},
    {"1.2.840.10008.1.2.1.99", Encoding::little_endian},
    {"1.2.840.10008.1.2.2", Encoding::big_endian},
    {"1.2.840.10008.1.2.5", Encoding::rle},
    {"1.2.840.10008.1.2.4.50", Encoding::jpeg},
    {"1.2.840.10008.1.2.4.51", Encoding::jpeg},
    {"1.2.840.10008.1.2.4.57", Encoding::jpeg},
    {"1.2.840.10008.1.2.4.70", Encoding::jpeg},
    {"1.2.840.10008.1.2.4.80", Encoding::jpegls},
    {"1.2.840.10008.1.2.4.81", Encoding::jpegls},
    {"1.2.840.10008.1.2.4.90", Encoding::jpeg2000},
    {"1.2.840.10008.1.2.4.91", Encoding::jpeg2000},
    {"1.2.840.10008.1.2.4.92", Encoding::jpeg2000},
    {"1.2.840.10008.1.2.4.93", Encoding::jpeg2000},
    {"1.2.840.10008.1.2.4.201", Encoding::jpeg2000},
    {"1.2.840.10008.1.2.4.202", Encoding::jpeg2000},
    {"1.2.840.10008.1.2.4.203", Encoding::jpeg2000},
};

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
  const auto uid = syntax_ ? syntax_->bytes(row) : std::nullopt;
  const auto* const syntax = std::ranges::find(syntaxes, uid, &Syntax::uid);
  if (syntax == std::end(syntaxes)) return std::nullopt;
  FrameFormat format{.image = image, .encoding = syntax->encoding};
  const auto interpretation = interpretation_ ? interpretation_->bytes(row) : std::nullopt;
  const bool is_422 = interpretation == "YBR_FULL_422";
  const bool is_ybr = interpretation == "YBR_FULL" || is_422;
  const bool is_compressed = format.is_compressed();
  if (is_compressed && !is_ybr) return std::nullopt;
  if (image.channels != 1 && image.channels != 3) {
    throw bad("samples_per_pixel is " + std::to_string(image.channels));
  }
  if (image.channels > 1 && !is_compressed) {
    format.planar = number(planar_, "planar_configuration", row, 0, 1) == 1;
  }
  const bool are_bits = bits_allocated == 1;
  if (are_bits && format.encoding == Encoding::rle)
    throw bad("bits_allocated is 1 of an RLE frame");
  format.bits_allocated = format.bits_stored = bits_allocated;
  // Streams of JPEG-LS and JPEG 2000 say themselves how many bits they have.
  if (is_integer(image.type) && (!is_compressed || format.encoding == Encoding::jpeg)) {
    format.bits_stored = number(stored_, "bits_stored", row, 1, bits_allocated);
  }
  if (!interpretation) throw bad("photometric_interpretation is missing");
  if (is_ybr) {
    // Codecs, and RLE, have no colours of two pixels each.
    const bool is_halved = is_422 && !is_compressed && format.encoding != Encoding::rle;
    format.colours = is_halved ? Colours::ybr_full_422 : Colours::ybr_full;
    const bool fits = image.channels == 3 && image.type == PixelType::uint8 && !are_bits &&
                      !(is_halved && image.samples() / 3 % 2 != 0);
    if (!fits) throw bad("pixels of " + std::string(*interpretation) + " are " + describe(image));
  }
  return format;
}

}  // namespace iac::dicom
