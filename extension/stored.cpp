// iac_stored(record) -> BLOB: the bytes of a record as they are stored, encoded.
#include "functions.h"
#include "resolve.h"

namespace iac::duckdb {

void register_stored(duckdb_connection connection) {
  static constexpr Resolver resolver{.name = "iac_stored",
                                     .result = [] { return logical_type(DUCKDB_TYPE_BLOB); },
                                     .decode = false};
  register_resolver(connection, resolver);
}

}  // namespace iac::duckdb
