// How the records of a pack of one whole slide decode. Its index table knows more of them than
// their codecs do: how much of a tile at the edge is slide, the rest being padding, and which
// records are no images at all.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>

#include "iac/codec/codec.h"
#include "iac/pack.h"
#include "iac/table_values.h"
#include "iac/wsi/grid.h"

namespace iac::wsi {

// Whether a pack is one of a whole slide.
bool is_slide(const Pack& pack);

class TileDecoders {
 public:
  // Reads what header and index table say of rows, which must be rows of it. Throws Error.
  TileDecoders(const Pack& pack, std::span<const int64_t> rows);

  // What decodes a row, `codec` being what decodes its record: tiles are cut to their valid size,
  // and where `images` are wanted everything else decodes to nothing. Lives as long as this. Throws
  // Error for a valid size that no tile can have.
  const Codec& decoder(int64_t row, const Codec& codec, bool images);

 private:
  Grid grid_;
  std::optional<TableValues> kinds_, widths_, heights_;
  std::map<std::tuple<const Codec*, int64_t, int64_t>, std::unique_ptr<const Codec>> cut_;
};

}  // namespace iac::wsi
