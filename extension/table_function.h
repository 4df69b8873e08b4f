// Table functions of one pack's facts: a path in, rows out on one thread.
#pragma once

#include <string>
#include <vector>

#include "handles.h"

namespace iac::duckdb {

struct TableFunction {
  const char* name;
  void (*bind)(duckdb_bind_info info);
  void (*init)(duckdb_init_info info);
  void (*next)(duckdb_function_info info, duckdb_data_chunk chunk);
  bool picks_columns = false;  // only the columns that the query uses are written
};

// Registers `name(path)`.
void register_table_function(duckdb_connection connection, const TableFunction& function);

// What a fact is asked of: the packs that the parameter names.
struct PackList {
  ClientContext context;
  std::vector<std::string> paths;
};
PackList bind_packs(duckdb_bind_info info, const char* function);

// Values of a chunk, one by one.
void write_text(duckdb_data_chunk chunk, idx_t column, idx_t row, const std::string& text);
void write_integer(duckdb_data_chunk chunk, idx_t column, idx_t row, uint64_t value);
void write_null(duckdb_data_chunk chunk, idx_t column, idx_t row);

}  // namespace iac::duckdb
