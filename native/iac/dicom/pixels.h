// How the records of a pack of DICOM instances decode. Its index table knows more of them than
// their codecs do: which have no pixels at all, and which are signed although their codec holds
// unsigned ones of the same bits.
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
  PixelDecoders(const Table& index, std::span<const int64_t> rows);

  // What decodes a row, `codec` being what decodes its record: empty records that are to have no
  // pixels decode to nothing. Lives as long as this. Throws Error for a pixel_dtype that is none.
  const Codec& decoder(int64_t row, const Span& span, const Codec& codec);

 private:
  std::optional<TableValues> has_pixels_, dtypes_, bits_;
  std::map<std::tuple<const Codec*, PixelType, int64_t>, std::unique_ptr<const Codec>> typed_;
};

// Whether a record of a batch decoded from a pack is that of an instance without pixels.
bool is_without_pixels(const Pack& pack, const Batch& batch, size_t record);

}  // namespace iac::dicom
