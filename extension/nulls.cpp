#include "nulls.h"

#include "strings.h"

namespace iac::duckdb {

// Of a struct its fields as well, as DuckDB wants it.
void set_nulls(std::span<const idx_t> slots, duckdb_vector out) {
  if (slots.empty()) return;
  const LogicalType type(duckdb_vector_get_column_type(out));
  const duckdb_type id = duckdb_get_type_id(type.get());
  duckdb_vector_ensure_validity_writable(out);
  uint64_t* const mask = duckdb_vector_get_validity(out);
  for (const idx_t slot : slots) {
    mask[slot / 64] &= ~(uint64_t{1} << (slot % 64));
    if (id == DUCKDB_TYPE_BLOB || id == DUCKDB_TYPE_VARCHAR) strings_of(out)[slot] = {};
    if (id == DUCKDB_TYPE_LIST) {
      static_cast<duckdb_list_entry*>(duckdb_vector_get_data(out))[slot] = {0, 0};
    }
  }
  if (id != DUCKDB_TYPE_STRUCT) return;
  for (idx_t i = 0; i < duckdb_struct_type_child_count(type.get()); ++i) {
    set_nulls(slots, duckdb_struct_vector_get_child(out, i));
  }
}

}  // namespace iac::duckdb
