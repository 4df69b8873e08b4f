// Record references: STRUCT(pack VARCHAR, row BIGINT, stamp UINTEGER).
#pragma once

#include <iac/pack.h>

#include <optional>
#include <string_view>
#include <vector>

#include "handles.h"

namespace iac::duckdb {

LogicalType record_type();

// Writes the references of the rows first to first + count - 1.
void fill_records(const Pack& pack, int64_t first, size_t count, duckdb_vector vector);

struct Reference {
  std::string_view pack;  // lives as long as the vector and the reader
  int64_t row = 0;
  std::optional<int64_t> stamp;
};

// Reads references out of structs with the fields pack and row, and perhaps stamp, in any order,
// among others, with rows and stamps of any integer type.
class ReferenceReader {
 public:
  // Throws Error saying what a reference is when `type` is no such struct.
  explicit ReferenceReader(duckdb_logical_type type);

  // The reference in each of `count` slots; none for a NULL, or where pack or row is NULL.
  std::vector<std::optional<Reference>> read(duckdb_vector vector, size_t count) const;

 private:
  struct Field {
    idx_t position = 0;
    duckdb_type type = DUCKDB_TYPE_INVALID;
  };

  Field pack_, row_;
  std::optional<Field> stamp_;
  duckdb_type dictionary_index_ = DUCKDB_TYPE_INVALID;  // of an ENUM of packs
  std::vector<std::string> dictionary_;
  bool is_null_ = false;  // NULL without a type
};

}  // namespace iac::duckdb
