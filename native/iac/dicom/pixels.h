// How the records of a pack of DICOM instances decode. Its index table knows more of them than
// their codecs do: which have no pixels at all, which are arrays of bytes and of what shape, and
// which types pixels have that their codec has no word for.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "iac/codec/codec.h"
#include "iac/dicom/frame_format.h"
#include "iac/pack.h"
#include "iac/table_values.h"

namespace iac::dicom {

class PixelDecoders {
 public:
  // Reads what the index table says of rows, which must be rows of it. Throws Error.
  PixelDecoders(const Pack& pack, std::span<const int64_t> rows);

  // What decodes a row, `codec` being what decodes its record: to the image that the index table
  // says, or nothing where it says that there are no pixels. A frame that the core has no decoder
  // for keeps `codec`, which gives its bytes. Lives as long as this. Throws Error where the index
  // table contradicts itself.
  const Codec& decoder(int64_t row, const Span& span, const Codec& codec);

 private:
  // The record's id in the header's record_codecs; nothing where all have one codec.
  std::optional<int64_t> codec_id(const Span& span) const;
  bool has_pixels(int64_t row, const Span& span) const;
  ImageShape image(int64_t row) const;
  // Of numbers of that type; throws Error where the index table says that they are of another.
  int bits_allocated(int64_t row, PixelType type) const;
  int bits_stored(int64_t row, PixelType type) const;

  const Pack& pack_;
  std::optional<TableValues> has_pixels_, dtypes_, rows_, columns_, samples_;
  std::optional<TableValues> allocated_, stored_, representation_;
  std::optional<FrameFormats> formats_;  // where records have codecs of their own
  std::map<std::tuple<const Codec*, ImageShape, int>, std::unique_ptr<const Codec>> typed_;
  std::map<ImageShape, std::unique_ptr<const Codec>> raw_;
  std::map<std::pair<const Codec*, FrameFormat>, std::unique_ptr<const Codec>> frames_;
};

}  // namespace iac::dicom
