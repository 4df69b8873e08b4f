// Lists, structs, maps, unions, and the encodings whose values are those of a child.
#include <algorithm>

#include "vectors.h"

namespace iac::duckdb {
namespace {

struct Range {
  int64_t offset = 0;
  int64_t length = 0;
};

const std::vector<int64_t>& expand(std::vector<int64_t>& out, const Rows& rows,
                                   const ArrowArrayView& view) {
  out.resize(rows.count());
  for (size_t i = 0; i < rows.count(); ++i) out[i] = is_null(view, rows[i]) ? -1 : rows[i];
  return out;
}

// The lists of a vector share one child. It gets the part of the Arrow child from the first to
// the last element in use, unless the lists are scattered: then one list behind the other. So it
// is never longer than the Arrow child, even where lists overlap or repeat.
template <class RangeOf>
void fill_lists(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                duckdb_vector vector, RangeOf range_of) {
  fill_validity(type, view, rows, vector);
  auto* entries = static_cast<duckdb_list_entry*>(duckdb_vector_get_data(vector));
  int64_t begin = INT64_MAX, end = 0, sum = 0;
  for (size_t i = 0; i < rows.count(); ++i) {
    const Range range = is_null(view, rows[i]) ? Range{} : range_of(rows[i]);
    entries[i] = {static_cast<uint64_t>(range.offset), static_cast<uint64_t>(range.length)};
    if (range.length == 0) continue;
    begin = std::min(begin, range.offset);
    end = std::max(end, range.offset + range.length);
    sum += range.length;
  }
  const int64_t stretch = std::max<int64_t>(end - begin, 0);
  const bool scattered = sum < stretch;
  const auto size = static_cast<size_t>(scattered ? sum : stretch);

  std::vector<int64_t> elements;
  if (scattered) elements.reserve(size);
  for (size_t i = 0; i < rows.count(); ++i) {
    duckdb_list_entry& entry = entries[i];
    if (entry.length == 0) {
      entry.offset = 0;
    } else if (scattered) {
      const auto offset = static_cast<int64_t>(entry.offset);
      entry.offset = elements.size();
      for (uint64_t k = 0; k < entry.length; ++k) {
        elements.push_back(offset + static_cast<int64_t>(k));
      }
    } else {
      entry.offset -= static_cast<uint64_t>(begin);
    }
  }
  if (duckdb_list_vector_reserve(vector, size) != DuckDBSuccess ||
      duckdb_list_vector_set_size(vector, size) != DuckDBSuccess) {
    throw std::bad_alloc();
  }
  const ValueType& child = type.children[0];
  child.fill(child, *view.children[0],
             scattered ? Rows(elements) : Rows(size > 0 ? begin : 0, size),
             duckdb_list_vector_get_child(vector));
}

template <class Offset>
void fill_offset_lists(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                       duckdb_vector vector) {
  const auto* offsets = static_cast<const Offset*>(view.buffer_views[1].data.data);
  fill_lists(type, view, rows, vector,
             [&](int64_t row) { return Range{offsets[row], offsets[row + 1] - offsets[row]}; });
}

template <class Offset>
void fill_viewed_lists(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                       duckdb_vector vector) {
  const auto* offsets = static_cast<const Offset*>(view.buffer_views[1].data.data);
  const auto* sizes = static_cast<const Offset*>(view.buffer_views[2].data.data);
  fill_lists(type, view, rows, vector,
             [&](int64_t row) { return Range{offsets[row], sizes[row]}; });
}

}  // namespace

void fill_list(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
               duckdb_vector vector) {
  fill_offset_lists<int32_t>(type, view, rows, vector);
}

void fill_large_list(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                     duckdb_vector vector) {
  fill_offset_lists<int64_t>(type, view, rows, vector);
}

void fill_list_view(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                    duckdb_vector vector) {
  fill_viewed_lists<int32_t>(type, view, rows, vector);
}

void fill_large_list_view(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                          duckdb_vector vector) {
  fill_viewed_lists<int64_t>(type, view, rows, vector);
}

void fill_fixed_list_as_list(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                             duckdb_vector vector) {
  fill_lists(type, view, rows, vector,
             [&](int64_t row) { return Range{row * type.limit, type.limit}; });
}

// The elements of a NULL array are NULL as well, as DuckDB wants it.
void fill_array(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                duckdb_vector vector) {
  const bool any_null = fill_validity(type, view, rows, vector);
  const ValueType& child = type.children[0];
  const duckdb_vector elements = duckdb_array_vector_get_child(vector);
  const auto size = static_cast<size_t>(type.limit);
  if (rows.contiguous() && !any_null) {
    return child.fill(child, *view.children[0],
                      Rows(rows.first() * type.limit, rows.count() * size), elements);
  }
  std::vector<int64_t> chosen;
  chosen.reserve(rows.count() * size);
  for (size_t i = 0; i < rows.count(); ++i) {
    const bool null = is_null(view, rows[i]);
    for (int64_t k = 0; k < type.limit; ++k) chosen.push_back(null ? -1 : rows[i] * type.limit + k);
  }
  child.fill(child, *view.children[0], Rows(chosen), elements);
}

// The fields of a NULL struct are NULL as well, as DuckDB wants it.
void fill_struct(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                 duckdb_vector vector) {
  const bool any_null = fill_validity(type, view, rows, vector);
  std::vector<int64_t> chosen;
  const Rows inner = any_null ? Rows(expand(chosen, rows, view)) : rows;
  for (size_t i = 0; i < type.children.size(); ++i) {
    const ValueType& child = type.children[i];
    child.fill(child, *view.children[i], inner, duckdb_struct_vector_get_child(vector, i));
  }
}

// DuckDB has a union as a struct: which member it is, then all members, NULL but for that one.
void fill_union(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                duckdb_vector vector) {
  fill_validity(type, view, rows, vector);
  const duckdb_vector tag_vector = duckdb_struct_vector_get_child(vector, 0);
  fill_validity(type, view, rows, tag_vector);
  auto* tags = static_cast<uint8_t*>(duckdb_vector_get_data(tag_vector));
  std::vector<std::vector<int64_t>> members(type.children.size(),
                                            std::vector<int64_t>(rows.count(), -1));
  for (size_t i = 0; i < rows.count(); ++i) {
    tags[i] = 0;
    if (rows[i] < 0) continue;
    const auto member = static_cast<uint8_t>(ArrowArrayViewUnionChildIndex(&view, rows[i]));
    tags[i] = member;
    members[member][i] = ArrowArrayViewUnionChildOffset(&view, rows[i]);
  }
  for (size_t i = 0; i < type.children.size(); ++i) {
    const ValueType& child = type.children[i];
    child.fill(child, *view.children[i], Rows(members[i]),
               duckdb_struct_vector_get_child(vector, i + 1));
  }
}

void fill_dictionary(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                     duckdb_vector vector) {
  std::vector<int64_t> values(rows.count());
  for (size_t i = 0; i < rows.count(); ++i) {
    values[i] = is_null(view, rows[i]) ? -1 : ArrowArrayViewGetIntUnsafe(&view, rows[i]);
  }
  const ValueType& child = type.children[0];
  child.fill(child, *view.dictionary, Rows(values), vector);
}

void fill_run_ends(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                   duckdb_vector vector) {
  const ArrowArrayView& ends = *view.children[0];
  const auto run_of = [&](int64_t row) {  // the first run that ends behind the row
    int64_t low = 0, high = ends.length - 1;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (ArrowArrayViewGetIntUnsafe(&ends, middle) > row) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  };
  std::vector<int64_t> runs(rows.count());
  for (size_t i = 0; i < rows.count(); ++i) runs[i] = rows[i] < 0 ? -1 : run_of(rows[i]);
  const ValueType& child = type.children[0];
  child.fill(child, *view.children[1], Rows(runs), vector);
}

}  // namespace iac::duckdb
