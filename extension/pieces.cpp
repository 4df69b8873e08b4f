#include "pieces.h"

#include <algorithm>
#include <vector>

namespace iac::duckdb {

static constexpr size_t piece_rows = 16384;

std::span<const int64_t> next_piece(const Pack& pack, std::span<const int64_t> rows, uint64_t most,
                                    size_t least) {
  rows = rows.first(std::min(rows.size(), piece_rows));
  const std::vector<Span> spans = pack.layout().spans(rows);
  uint64_t bytes = 0;
  size_t count = 0;
  while (count < rows.size()) {
    // What is not inside the data segment is not read.
    if (spans[count].length <= pack.header().data.length) bytes += spans[count].length;
    if (count >= least && bytes > most) break;
    ++count;
  }
  return rows.first(count);
}

}  // namespace iac::duckdb
