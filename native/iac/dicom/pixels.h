// How the records of a pack of DICOM instances decode. Its index table knows more of them than
// their codecs do: which have no pixels at all, which are arrays of bytes and of what shape, and
// which types pixels have that their codec has no word for.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "iac/codec/codec.h"
#include "iac/pack.h"
#include "iac/table_values.h"

namespace iac::dicom {

class PixelDecoders {
 public:
  // Reads what the index table says of rows, which must be rows of it. Throws Error.
  PixelDecoders(const Pack& pack, std::span<const int64_t> rows);

  // What decodes a row, `codec` being what decodes its record: empty records that are to have no
  // pixels decode to nothing. Lives as long as this. Throws Error where the index table
  // contradicts itself.
  const Codec& decoder(int64_t row, const Span& span, const Codec& codec);

 private:
  // The record's id in the header's record_codecs; nothing where all have one codec.
  std::optional<int64_t> codec_id(const Span& span) const;
  ImageShape shape(int64_t row, PixelType type) const;

  const Pack& pack_;
  std::optional<TableValues> has_pixels_, dtypes_, bits_, rows_, columns_, samples_;
  std::map<std::tuple<const Codec*, PixelType, int64_t>, std::unique_ptr<const Codec>> typed_;
  std::map<std::tuple<PixelType, uint32_t, uint32_t, uint32_t>, std::unique_ptr<const Codec>> raw_;
};

}  // namespace iac::dicom
