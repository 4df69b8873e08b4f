// Table functions of packs: a path, a pattern or a list of them in, rows out.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "handles.h"

namespace iac::duckdb {

struct Option {
  const char* name;
  duckdb_type type;
};

struct TableFunction {
  const char* name;
  std::span<const Option> options = {};
  void (*bind)(duckdb_bind_info info);
  void (*init)(duckdb_init_info info);
  void (*init_worker)(duckdb_init_info info) = nullptr;  // of each thread, where there are several
  void (*next)(duckdb_function_info info, duckdb_data_chunk chunk);
  bool picks_columns = false;  // only the columns that the query uses are written
};

// Registers `name(path, option := ...)`.
void register_table_function(duckdb_connection connection, const TableFunction& function);

// What the function that is bound is called.
const char* function_name(duckdb_bind_info info);

// What a fact is asked of: the packs that the parameter names.
struct PackList {
  ClientContext context;
  std::vector<std::string> paths;
  bool is_one;  // named by its path, and not by a pattern or in a list
};
PackList bind_packs(duckdb_bind_info info);

// An option that is false unless given.
bool bind_flag(duckdb_bind_info info, const char* name);

// Values of a chunk, one by one.
void write_text(duckdb_data_chunk chunk, idx_t column, idx_t row, const std::string& text);
void write_integer(duckdb_data_chunk chunk, idx_t column, idx_t row, uint64_t value);
void write_null(duckdb_data_chunk chunk, idx_t column, idx_t row);

}  // namespace iac::duckdb
