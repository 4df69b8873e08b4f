// What the extension adds to DuckDB. Each throws when it cannot be registered.
#pragma once

#include "duckdb_api.h"

namespace iac::duckdb {

void register_scan(duckdb_connection connection);     // iac_scan(path), iac_slides(path)
void register_payload(duckdb_connection connection);  // iac_payload(record) -> BLOB
void register_stored(duckdb_connection connection);   // iac_stored(record) -> BLOB
void register_text(duckdb_connection connection);     // iac_text(record) -> VARCHAR
void register_docs(duckdb_connection connection);     // iac_docs, iac_doc_pairs(record) -> STRUCT[]
void register_image(duckdb_connection connection);    // iac_image(record) -> STRUCT
void register_tags(duckdb_connection connection);     // iac_tags(record), iac_tag(record, tag)
void register_hu(duckdb_connection connection);       // iac_hu(record) -> STRUCT
void register_vector(duckdb_connection connection);   // iac_vector, iac_vector_double(record)
void register_verify(duckdb_connection connection);   // iac_verify(record) -> BOOLEAN
void register_info(duckdb_connection connection);     // iac_info(path)
void register_check(duckdb_connection connection);    // iac_check(path)
void register_copy(duckdb_connection connection);     // COPY ... TO 'x.iac' (FORMAT iac)
void register_file_names(duckdb_database database);   // FROM 'x.iac'

}  // namespace iac::duckdb
