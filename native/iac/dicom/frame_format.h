// What the index table of a pack says of frames that it holds as they stood in a file: the Image
// Pixel module (PS3.3 C.7.6.3) and the transfer syntax (PS3.5 annex A).
#pragma once

#include <compare>
#include <optional>
#include <span>

#include "iac/image.h"
#include "iac/table_values.h"

namespace iac::dicom {

struct FrameFormat {
  // The last are those of image codecs, which give samples channels interleaved.
  enum class Encoding : uint8_t { little_endian, big_endian, rle, jpeg, jpegls, jpeg2000 };
  enum class Colours : uint8_t { as_stored, ybr_full, ybr_full_422 };

  ImageShape image;  // that a frame is as pixels
  Encoding encoding = Encoding::little_endian;
  Colours colours = Colours::as_stored;
  bool planar = false;  // all of a channel before the next
  int bits_allocated = 0, bits_stored = 0;

  bool is_compressed() const { return encoding >= Encoding::jpeg; }

  auto operator<=>(const FrameFormat&) const = default;
};

class FrameFormats {
 public:
  // Reads what the index table says of rows, which must be rows of it. Throws Error.
  FrameFormats(const Table& index, std::span<const int64_t> rows);

  // The format of a row's frame, which is that image, of so many bits allocated; nothing for one
  // that is not decoded here. Throws Error for one that cannot be.
  std::optional<FrameFormat> find(int64_t row, const ImageShape& image, int bits_allocated) const;

 private:
  std::optional<TableValues> syntax_, interpretation_, planar_, stored_;
};

}  // namespace iac::dicom
