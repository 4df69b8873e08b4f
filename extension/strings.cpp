#include "strings.h"

#include <string>
#include <string_view>
#include <vector>

#include "vectors.h"

namespace iac::duckdb {
namespace {

// Strings from anywhere: those that do not fit into their headers are put one behind the other,
// so that DuckDB takes them in one piece. A string that follows itself is kept once.
template <class Text>
void gather(const ArrowArrayView& view, const Rows& rows, duckdb_vector vector, Text text) {
  struct LongString {
    size_t slot;
    size_t offset;
    uint32_t length;
  };
  std::string piece;
  std::vector<LongString> long_strings;
  duckdb_string_t* out = strings_of(vector);
  int64_t last_long = -1;
  for (size_t i = 0; i < rows.count(); ++i) {
    out[i] = {};
    if (is_null(view, rows[i])) continue;
    const std::string_view value = text(rows[i]);
    const uint32_t length = checked_length(value.size());
    if (length <= inline_bytes) {
      out[i] = string_header(value.data(), length, nullptr);
    } else if (rows[i] == last_long) {
      long_strings.push_back({i, long_strings.back().offset, length});
    } else {
      long_strings.push_back({i, piece.size(), length});
      piece += value;
      last_long = rows[i];
    }
  }
  if (long_strings.empty()) return;
  const bool in_one_piece = piece.size() <= UINT32_MAX;
  const char* kept = in_one_piece
                         ? keep_bytes(vector, long_strings.front().slot, piece.data(), piece.size())
                         : nullptr;
  for (const auto& [slot, offset, length] : long_strings) {
    if (in_one_piece) {
      out[slot] = string_header(kept + offset, length, kept + offset);
    } else {
      keep_bytes(vector, slot, piece.data() + offset, length);
    }
  }
}

template <class Offset>
void fill_offset_strings(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                         duckdb_vector vector) {
  if (rows.count() == 0) return;
  fill_validity(type, view, rows, vector);
  const auto* offsets = static_cast<const Offset*>(view.buffer_views[1].data.data);
  const char* data = view.buffer_views[2].data.as_char;
  if (rows.contiguous()) {
    const auto size = static_cast<uint64_t>(view.buffer_views[2].size_bytes);
    write_strings(vector, data, size, offsets + rows.first(), rows.count(),
                  [](size_t i) { return i; });
    return;
  }
  gather(view, rows, vector, [&](int64_t row) {
    const Offset start = offsets[row];
    return std::string_view(data + start, static_cast<size_t>(offsets[row + 1] - start));
  });
}

}  // namespace

void fill_string(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                 duckdb_vector vector) {
  fill_offset_strings<int32_t>(type, view, rows, vector);
}

void fill_large_string(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                       duckdb_vector vector) {
  fill_offset_strings<int64_t>(type, view, rows, vector);
}

void fill_string_view(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                      duckdb_vector vector) {
  fill_validity(type, view, rows, vector);
  gather(view, rows, vector, [&](int64_t row) {
    const ArrowBufferView value = ArrowArrayViewGetBytesUnsafe(&view, row);
    return std::string_view(value.data.as_char, static_cast<size_t>(value.size_bytes));
  });
}

void fill_fixed_binary(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                       duckdb_vector vector) {
  fill_validity(type, view, rows, vector);
  const auto width = static_cast<size_t>(type.limit);
  const char* data = view.buffer_views[1].data.as_char;
  gather(view, rows, vector, [&](int64_t row) {
    return std::string_view(data + static_cast<size_t>(row) * width, width);
  });
}

}  // namespace iac::duckdb
