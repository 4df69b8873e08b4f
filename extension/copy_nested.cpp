// Lists, arrays, structs, maps and unions as Arrow arrays.
#include <iac/error.h>

#include "copy_types.h"
#include "values.h"

namespace iac::duckdb {
namespace {

// The rows, with -1 for those that are NULL: what lies below a NULL may be anything.
std::vector<int64_t> present(duckdb_vector vector, const Rows& rows) {
  const uint64_t* mask = duckdb_vector_get_validity(vector);
  std::vector<int64_t> present(rows.count());
  for (size_t i = 0; i < rows.count(); ++i) {
    const bool null = rows[i] < 0 || !is_valid(mask, static_cast<size_t>(rows[i]));
    present[i] = null ? -1 : rows[i];
  }
  return present;
}

}  // namespace

void append_list(const StoredType& type, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  append_validity(vector, rows, out);
  const auto* entries = static_cast<const duckdb_list_entry*>(duckdb_vector_get_data(vector));
  const std::vector<int64_t> lists = present(vector, rows);
  ArrowArray& elements = *out.children[0];
  ArrowBuffer* offsets = ArrowArrayBuffer(&out, 1);
  require(ArrowBufferReserve(offsets, static_cast<int64_t>(rows.count() * sizeof(int32_t))));
  uint64_t first = 0, count = 0;
  bool contiguous = true;  // each list begins where the one before ends
  for (const int64_t row : lists) {
    const duckdb_list_entry entry = row < 0 ? duckdb_list_entry{} : entries[row];
    if (count == 0) first = entry.offset;
    contiguous &= entry.length == 0 || entry.offset == first + count;
    count += entry.length;
    const int64_t end = elements.length + static_cast<int64_t>(count);
    if (end > INT32_MAX) {
      throw Error(Error::Kind::argument,
                  "the lists of neighbouring rows have more than 2^31 - 1 "
                  "elements: large ones belong into the payload");
    }
    const auto offset = static_cast<int32_t>(end);
    ArrowBufferAppendUnsafe(offsets, &offset, sizeof offset);
  }
  const StoredType& child = type.children[0];
  const duckdb_vector values = duckdb_list_vector_get_child(vector);
  if (contiguous) {
    return child.append(child, values, Rows(static_cast<int64_t>(first), count), elements);
  }
  std::vector<int64_t> chosen;
  chosen.reserve(count);
  for (const int64_t row : lists) {
    const duckdb_list_entry entry = row < 0 ? duckdb_list_entry{} : entries[row];
    for (uint64_t k = 0; k < entry.length; ++k) {
      chosen.push_back(static_cast<int64_t>(entry.offset + k));
    }
  }
  child.append(child, values, Rows(chosen), elements);
}

void append_array(const StoredType& type, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  const bool any_null = append_validity(vector, rows, out);
  const StoredType& child = type.children[0];
  const duckdb_vector values = duckdb_array_vector_get_child(vector);
  const auto size = static_cast<int64_t>(type.size);
  if (rows.contiguous() && !any_null) {
    return child.append(child, values, Rows(rows.first() * size, rows.count() * type.size),
                        *out.children[0]);
  }
  std::vector<int64_t> chosen;
  chosen.reserve(rows.count() * type.size);
  for (const int64_t row : present(vector, rows)) {
    for (int64_t k = 0; k < size; ++k) chosen.push_back(row < 0 ? -1 : row * size + k);
  }
  child.append(child, values, Rows(chosen), *out.children[0]);
}

void append_struct(const StoredType& type, duckdb_vector vector, const Rows& rows,
                   ArrowArray& out) {
  const bool any_null = append_validity(vector, rows, out);
  const std::vector<int64_t> chosen = any_null ? present(vector, rows) : std::vector<int64_t>{};
  const Rows inner = any_null ? Rows(chosen) : rows;
  for (size_t i = 0; i < type.children.size(); ++i) {
    const StoredType& child = type.children[i];
    child.append(child, duckdb_struct_vector_get_child(vector, i), inner, *out.children[i]);
  }
}

// DuckDB has a union as a struct of the tag and all members. Arrow's unions have no NULL of their
// own: it becomes the first member's.
void append_union(const StoredType& type, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  const auto* tags = static_cast<const uint8_t*>(
      duckdb_vector_get_data(duckdb_struct_vector_get_child(vector, 0)));
  std::vector<std::vector<int64_t>> members(type.children.size(),
                                            std::vector<int64_t>(rows.count(), -1));
  ArrowBuffer* types = ArrowArrayBuffer(&out, 0);
  require(ArrowBufferReserve(types, static_cast<int64_t>(rows.count())));
  const std::vector<int64_t> unions = present(vector, rows);
  for (size_t i = 0; i < unions.size(); ++i) {
    const uint8_t tag = unions[i] < 0 ? 0 : tags[unions[i]];
    ArrowBufferAppendUnsafe(types, &tag, sizeof tag);
    members[tag][i] = unions[i];
  }
  out.length += static_cast<int64_t>(rows.count());
  for (size_t i = 0; i < type.children.size(); ++i) {
    const StoredType& child = type.children[i];
    child.append(child, duckdb_struct_vector_get_child(vector, i + 1), Rows(members[i]),
                 *out.children[i]);
  }
}

}  // namespace iac::duckdb
