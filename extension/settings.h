// The settings of the extension, and those of DuckDB that it follows. None of them changes what a
// scan returns.
#pragma once

#include <iac/pack.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "handles.h"

namespace iac::duckdb {

constexpr const char* max_batch_bytes_setting = "iac_max_batch_bytes";

// How payloads are read. Each of these throws Error naming a setting that is out of range.
struct ReadSettings {
  unsigned threads = 1;
  bool verify = true;             // compare with crc32
  uint64_t max_record_bytes = 0;  // one decoded record
  uint64_t max_batch_bytes = 0;   // one call, which gets up to 2,048 rows

  // The same for a batch of records.
  ReadOptions options() const;
};
ReadSettings read_settings(duckdb_client_context context);

// How many threads DuckDB may use.
unsigned duckdb_threads(duckdb_client_context context);

// How many packs stay open between queries.
size_t cache_packs(duckdb_client_context context);

// DuckDB's memory_limit in bytes.
uint64_t memory_limit(duckdb_client_context context);

// DuckDB's enable_external_access: without it there are rules about which files may be opened.
bool external_access(duckdb_client_context context);

// The folder in which packs that moved are looked for; empty when there is none.
std::string root_folder(duckdb_client_context context);

// A setting of any type as text; empty when there is none of that name.
std::string text_setting(duckdb_client_context context, const char* name);

void register_settings(duckdb_connection connection);

}  // namespace iac::duckdb
