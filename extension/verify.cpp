// iac_verify(record) -> BOOLEAN: whether the stored bytes are those of the crc32 in the index; NULL
// where there is none to compare.
#include <iac/error.h>

#include <algorithm>

#include "functions.h"
#include "resolve.h"

namespace iac::duckdb {

static void write_verdicts(const Records& records, duckdb_vector out) {
  const Pack& pack = records.pack;
  if (!pack.layout().has_crc32()) {
    pack.locate(records.rows);  // that all are there
    duckdb_vector_ensure_validity_writable(out);
    uint64_t* const validity = duckdb_vector_get_validity(out);
    for (const idx_t slot : records.slots) duckdb_validity_set_row_invalid(validity, slot);
    return;
  }
  auto* const verdicts = static_cast<bool*>(duckdb_vector_get_data(out));
  for (const idx_t slot : records.slots) verdicts[slot] = true;
  ReadOptions options = records.settings.options();
  options.decode = false;
  options.verify = true;
  options.on_error = OnError::null;
  options.limits.batch_bytes = 0;  // of records whose bytes stay here
  for (RowFailure& failure : pack.read(records.rows, options).failures) {
    if (failure.error.kind() != Error::Kind::checksum) throw std::move(failure.error);
    verdicts[records.slots[failure.position]] = false;
  }
}

void register_verify(duckdb_connection connection) {
  static constexpr Resolver resolver{.name = "iac_verify",
                                     .result = [] { return logical_type(DUCKDB_TYPE_BOOLEAN); },
                                     .write = write_verdicts};
  register_resolver(connection, resolver);
}

}  // namespace iac::duckdb
