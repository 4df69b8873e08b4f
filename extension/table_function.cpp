#include "table_function.h"

#include <iac/error.h>

#include "glob.h"
#include "pack_files.h"
#include "strings.h"

namespace iac::duckdb {

static const TableFunction& bound(duckdb_bind_info info) {
  return *static_cast<const TableFunction*>(duckdb_bind_get_extra_info(info));
}

const char* function_name(duckdb_bind_info info) { return bound(info).name; }

void register_table_function(duckdb_connection connection, const TableFunction& table_function) {
  const Handle<duckdb_table_function> function(duckdb_create_table_function());
  const LogicalType any = logical_type(DUCKDB_TYPE_ANY);
  duckdb_table_function_set_name(function.get(), table_function.name);
  duckdb_table_function_add_parameter(function.get(), any.get());
  for (const Option& option : table_function.options) {
    const LogicalType type = logical_type(option.type);
    duckdb_table_function_add_named_parameter(function.get(), option.name, type.get());
  }
  duckdb_table_function_supports_projection_pushdown(function.get(), table_function.picks_columns);
  duckdb_table_function_set_extra_info(function.get(), const_cast<TableFunction*>(&table_function),
                                       nullptr);
  duckdb_table_function_set_bind(function.get(), [](duckdb_bind_info info) {
    guarded([&](const char* error) { duckdb_bind_set_error(info, error); },
            [&] { bound(info).bind(info); });
  });
  duckdb_table_function_set_init(function.get(), [](duckdb_init_info info) {
    guarded(
        [&](const char* error) { duckdb_init_set_error(info, error); },
        [&] { static_cast<const TableFunction*>(duckdb_init_get_extra_info(info))->init(info); });
  });
  if (table_function.init_worker != nullptr) {
    duckdb_table_function_set_local_init(function.get(), [](duckdb_init_info info) {
      guarded(
          [&](const char* error) { duckdb_init_set_error(info, error); },
          [&] {
            static_cast<const TableFunction*>(duckdb_init_get_extra_info(info))->init_worker(info);
          });
    });
  }
  duckdb_table_function_set_function(
      function.get(), [](duckdb_function_info info, duckdb_data_chunk chunk) {
        guarded([&](const char* error) { duckdb_function_set_error(info, error); },
                [&] {
                  static_cast<const TableFunction*>(duckdb_function_get_extra_info(info))
                      ->next(info, chunk);
                });
      });
  if (duckdb_register_table_function(connection, function.get()) != DuckDBSuccess) {
    throw Error(Error::Kind::argument, std::string("cannot register ") + table_function.name);
  }
}

PackList bind_packs(duckdb_bind_info info) {
  PackList packs;
  duckdb_table_function_get_client_context(info, packs.context.out());
  const Value argument(duckdb_bind_get_parameter(info, 0));
  for (PackFile& file : pack_files(packs.context.get(), argument.get(), function_name(info))) {
    packs.paths.push_back(std::move(file.path));
  }
  packs.is_one = duckdb_get_type_id(duckdb_get_value_type(argument.get())) != DUCKDB_TYPE_LIST &&
                 !is_glob(take_text(duckdb_get_varchar(argument.get())));
  return packs;
}

bool bind_flag(duckdb_bind_info info, const char* name) {
  const Value value(duckdb_bind_get_named_parameter(info, name));
  return value && !duckdb_is_null_value(value.get()) && duckdb_get_bool(value.get());
}

void write_text(duckdb_data_chunk chunk, idx_t column, idx_t row, const std::string& text) {
  duckdb_vector_assign_string_element_len(duckdb_data_chunk_get_vector(chunk, column), row,
                                          text.data(), text.size());
}

void write_integer(duckdb_data_chunk chunk, idx_t column, idx_t row, uint64_t value) {
  const duckdb_vector vector = duckdb_data_chunk_get_vector(chunk, column);
  static_cast<int64_t*>(duckdb_vector_get_data(vector))[row] = static_cast<int64_t>(value);
}

void write_null(duckdb_data_chunk chunk, idx_t column, idx_t row) {
  const duckdb_vector vector = duckdb_data_chunk_get_vector(chunk, column);
  duckdb_vector_ensure_validity_writable(vector);
  duckdb_validity_set_row_invalid(duckdb_vector_get_validity(vector), row);
}

}  // namespace iac::duckdb
