// Columns that have different types in different packs.
#pragma once

#include <optional>
#include <span>

#include "vectors.h"

namespace iac::duckdb {

// The type that UNION of DuckDB gives values of these types, as far as `widened` can make it:
//   integers and BOOLEAN          the smallest integer that holds all
//   these with FLOAT or DOUBLE    FLOAT or DOUBLE
//   DATE, TIMESTAMP of any unit   the later one of DATE, TIMESTAMP_S, _MS, TIMESTAMP, _NS
//   any of them with VARCHAR      VARCHAR
std::optional<duckdb_type> common_type(std::span<const duckdb_type> types);

// Values of `from` as a type that common_type gave for it.
ValueType widened(ValueType from, duckdb_type to);

}  // namespace iac::duckdb
