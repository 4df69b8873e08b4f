// Which DuckDB type each Arrow type becomes.
#pragma once

#include <string>
#include <unordered_set>

#include "vectors.h"

namespace iac::duckdb {

// The type of a field's values and how to fill them. Throws Error saying what DuckDB cannot hold.
ValueType value_type(const ArrowSchema& field);

// The Arrow type as text, nested ones in full: equal for fields whose values are read alike.
std::string type_text(const ArrowSchema& field);

// A type as DuckDB writes it: equal for equal types.
std::string type_name(duckdb_logical_type type);

// As DuckDB compares names: letters beyond ASCII stay as they are.
std::string lower_case(std::string text);

// Names that differ from each other also when case is ignored: those that came later get _1, _2
// and so on, as DuckDB's own readers do it. An empty name becomes v0, v1 by its position.
class UniqueNames {
 public:
  std::string add(std::string name, size_t position);

 private:
  std::unordered_set<std::string> taken_;  // in lower case
};

}  // namespace iac::duckdb
