// Reading what DuckDB's vectors hold.
#pragma once

#include <iac/error.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "strings.h"

namespace iac::duckdb {

inline bool is_integer(duckdb_type type) {
  return type >= DUCKDB_TYPE_TINYINT && type <= DUCKDB_TYPE_UBIGINT;
}

// Whether slot `i` is no NULL. Without a mask none is.
inline bool is_valid(const uint64_t* mask, size_t i) {
  return mask == nullptr || (mask[i / 64] >> (i % 64) & 1) != 0;
}

// A value of any integer type. Throws Error naming `what` for those above INT64_MAX.
inline int64_t integer_at(const void* data, duckdb_type type, size_t i, const char* what) {
  switch (type) {
    case DUCKDB_TYPE_TINYINT:
      return static_cast<const int8_t*>(data)[i];
    case DUCKDB_TYPE_SMALLINT:
      return static_cast<const int16_t*>(data)[i];
    case DUCKDB_TYPE_INTEGER:
      return static_cast<const int32_t*>(data)[i];
    case DUCKDB_TYPE_BIGINT:
      return static_cast<const int64_t*>(data)[i];
    case DUCKDB_TYPE_UTINYINT:
      return static_cast<const uint8_t*>(data)[i];
    case DUCKDB_TYPE_USMALLINT:
      return static_cast<const uint16_t*>(data)[i];
    case DUCKDB_TYPE_UINTEGER:
      return static_cast<const uint32_t*>(data)[i];
    default:
      break;
  }
  const uint64_t value = static_cast<const uint64_t*>(data)[i];
  if (value > INT64_MAX) {
    throw Error(Error::Kind::index,
                std::string(what) + " is out of range: " + std::to_string(value));
  }
  return static_cast<int64_t>(value);
}

// The bytes of a VARCHAR or BLOB, which live as long as the vector.
inline std::string_view text_of(const duckdb_string_t& string) {
  const uint32_t length = string.value.inlined.length;
  return {length <= inline_bytes ? string.value.inlined.inlined : string.value.pointer.ptr, length};
}

}  // namespace iac::duckdb
