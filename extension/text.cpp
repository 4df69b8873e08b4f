// iac_text(record) -> VARCHAR: the decoded bytes of a record as text, of documents their texts, one
// behind the other, without the manifest.
#include <iac/error.h>
#include <iac/utf8.h>

#include "functions.h"
#include "resolve.h"

namespace iac::duckdb {

static void check_utf8(const Batch& batch, std::span<const int64_t> rows) {
  const Bytes all = batch.data.bytes();
  if (is_ascii(all)) return;
  const auto* offsets = reinterpret_cast<const uint64_t*>(batch.offsets.data());
  for (size_t i = 0; i < batch.count; ++i) {
    if (is_utf8(all.subspan(offsets[i], offsets[i + 1] - offsets[i]))) continue;
    throw Error(Error::Kind::codec, "the payload is not UTF-8 text").at(rows[i]);
  }
}

static void write_text(const Records& records, duckdb_vector out) {
  const Batch batch = records.read_text();
  check_utf8(batch, records.rows);
  write_bytes(records, batch, out);
}

void register_text(duckdb_connection connection) {
  static constexpr Resolver resolver{.name = "iac_text",
                                     .result = [] { return logical_type(DUCKDB_TYPE_VARCHAR); },
                                     .write = write_text};
  register_resolver(connection, resolver);
}

}  // namespace iac::duckdb
