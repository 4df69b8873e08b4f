// iac_payload(record) -> BLOB: the decoded bytes of a record, of a fixed pack the row's bytes.
#include "functions.h"
#include "resolve.h"

namespace iac::duckdb {

static void write_payloads(const Records& records, duckdb_vector out) {
  write_bytes(records, records.read(true), out);
}

void register_payload(duckdb_connection connection) {
  static constexpr Resolver resolver{.name = "iac_payload",
                                     .result = [] { return logical_type(DUCKDB_TYPE_BLOB); },
                                     .write = write_payloads};
  register_resolver(connection, resolver);
}

}  // namespace iac::duckdb
