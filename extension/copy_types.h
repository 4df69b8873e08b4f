// Which Arrow type each DuckDB type becomes, and how vectors are added to Arrow arrays of it.
#pragma once

#include <nanoarrow/nanoarrow.hpp>
#include <string>
#include <vector>

#include "vectors.h"

namespace iac::duckdb {

struct StoredType {
  using Append = void(const StoredType&, duckdb_vector, const Rows&, ArrowArray&);

  duckdb_type id = DUCKDB_TYPE_INVALID;
  Append* append = nullptr;        // adds the rows of a vector, those of -1 as NULL
  size_t width = 0;                // of DuckDB's value; 0 where it is of no fixed width
  size_t size = 0;                 // of an ARRAY
  std::vector<std::string> texts;  // of an ENUM
  std::vector<StoredType> children;
};

// Sets the type of `field`. Throws Error saying what packs cannot hold.
StoredType stored_type(duckdb_logical_type logical, ArrowSchema& field);

// Appends bytes that are equal for equal values of a vector.
void append_key(const StoredType& type, duckdb_vector vector, int64_t row, std::string& key);

inline void require(ArrowErrorCode code) {
  if (code != NANOARROW_OK) throw std::bad_alloc();
}

// copy_values.cpp
StoredType::Append append_null, append_bool, append_8_bits, append_16_bits, append_32_bits,
    append_64_bits, append_time, append_time_ns, append_interval, append_hugeint, append_uhugeint,
    append_decimal, append_uuid, append_string, append_enum;

// copy_nested.cpp
StoredType::Append append_list, append_array, append_struct, append_union;

// Adds which rows are NULL, and so the rows to the length; whether any is.
bool append_validity(duckdb_vector vector, const Rows& rows, ArrowArray& out);

}  // namespace iac::duckdb
