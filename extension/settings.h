// The settings of the extension, and those of DuckDB that it follows.
#pragma once

#include <cstdint>
#include <string>

#include "handles.h"

namespace iac::duckdb {

// What the payloads of one call of iac_payload, iac_stored or iac_text may take: one call gets up
// to 2,048 rows.
constexpr const char* max_batch_bytes_setting = "iac_max_batch_bytes";
uint64_t max_batch_bytes(duckdb_client_context context);

// How many threads DuckDB may use.
unsigned duckdb_threads(duckdb_client_context context);

// A setting as text; empty when there is none of that name.
std::string text_setting(duckdb_client_context context, const char* name);

void register_settings(duckdb_connection connection);

}  // namespace iac::duckdb
