#include "strings.h"

#include <string_view>

#include "vectors.h"

namespace iac::duckdb {
namespace {

template <class Text>
void gather(const ArrowArrayView& view, const Rows& rows, duckdb_vector vector, Text text) {
  write_scattered_strings(
      vector, rows.count(),
      [&](size_t i) { return is_null(view, rows[i]) ? std::string_view() : text(rows[i]); },
      [](size_t i) { return i; });
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
