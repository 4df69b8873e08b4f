// Files as DuckDB opens them, and what it forbids.
#pragma once

#include <iac/error.h>

#include <string>

#include "handles.h"

namespace iac::duckdb {

// Opens a file for reading. Throws Error with what DuckDB says.
Handle<duckdb_file_handle> open_file(duckdb_file_system files, const std::string& path);

// The text of an error of DuckDB, without the traceback that one from a file system of Python has.
std::string message_of(duckdb_error_data error);

// Throws Error when DuckDB does not open the file of this machine at this path.
void check_readable(duckdb_client_context context, const std::string& path);

// Throws Error when the settings of DuckDB forbid to open this path, where there need be no file,
// or to look into this folder. A pattern is taken for a path, as DuckDB's own readers do it.
void check_allowed(duckdb_client_context context, const std::string& path);
void check_folder(duckdb_client_context context, const std::string& folder);

// Whether it is the settings of DuckDB that do not allow it.
bool is_forbidden(const Error& error);

}  // namespace iac::duckdb
