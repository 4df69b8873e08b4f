#include "strings.h"

#include <string>
#include <string_view>

#include "vectors.h"

namespace iac::duckdb {
namespace {

// Strings from anywhere: those that do not fit into their headers are put one behind the other,
// so that DuckDB takes them in one piece. A string that follows itself is kept once.
template <class Text>
void gather(const ArrowArrayView& view, const Rows& rows, duckdb_vector vector, Text text) {
  std::string piece;
  uint64_t total = 0;
  for (const bool copying : {false, true}) {
    if (copying && total <= UINT32_MAX) piece.reserve(total);
    if (copying && total > UINT32_MAX) break;
    int64_t last = -1;
    for (size_t i = 0; i < rows.count(); ++i) {
      if (rows[i] == last || is_null(view, rows[i])) continue;
      last = rows[i];
      const std::string_view value = text(last);
      if (value.size() <= inline_bytes) continue;
      if (copying) piece += value;
      total += copying ? 0 : value.size();
    }
  }
  const bool in_pieces = total > UINT32_MAX;
  const char* kept =
      piece.empty() ? nullptr : keep_bytes(vector, 0, piece.data(), piece.size());
  duckdb_string_t* out = strings_of(vector);
  int64_t last = -1;
  for (size_t i = 0; i < rows.count(); ++i) {
    const int64_t row = rows[i];
    if (is_null(view, row)) {
      out[i] = {};
    } else if (row == last) {
      out[i] = out[i - 1];
      continue;
    } else {
      const std::string_view value = text(row);
      const uint32_t length = checked_length(value.size());
      if (in_pieces) {
        duckdb_unsafe_vector_assign_string_element_len(vector, i, value.data(), length);
      } else {
        out[i] = string_header(value.data(), length, kept);
        if (length > inline_bytes) kept += length;
      }
    }
    last = row;
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
