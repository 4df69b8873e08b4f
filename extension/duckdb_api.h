// DuckDB's stable C API, fixed at the oldest version that loads the extension.
#pragma once

#define DUCKDB_EXTENSION_NAME iac
#define DUCKDB_EXTENSION_API_VERSION_MAJOR 1
#define DUCKDB_EXTENSION_API_VERSION_MINOR 5
#define DUCKDB_EXTENSION_API_VERSION_PATCH 6
#include <duckdb_extension.h>

DUCKDB_EXTENSION_EXTERN
