// iac_stored(record) -> BLOB: the bytes of a record as they are stored, encoded.
#include "functions.h"
#include "resolve.h"

namespace iac::duckdb {

static void write_stored(const Records& records, duckdb_vector out) {
  write_bytes(records, records.read(false), out);
}

void register_stored(duckdb_connection connection) {
  static constexpr Resolver resolver{.name = "iac_stored",
                                     .result = [] { return logical_type(DUCKDB_TYPE_BLOB); },
                                     .write = write_stored};
  register_resolver(connection, resolver);
}

}  // namespace iac::duckdb
