// FROM 'x.iac' reads a pack, whatever the case of the suffix.
#include <string>

#include "functions.h"
#include "handles.h"
#include "types.h"

namespace iac::duckdb {

static void replace(duckdb_replacement_scan_info info, const char* table_name, void*) {
  if (!lower_case(table_name).ends_with(".iac")) return;
  const Value path(duckdb_create_varchar(table_name));
  duckdb_replacement_scan_set_function_name(info, "iac_scan");
  duckdb_replacement_scan_add_parameter(info, path.get());
}

void register_file_names(duckdb_database database) {
  duckdb_add_replacement_scan(
      database,
      [](duckdb_replacement_scan_info info, const char* table_name, void* data) {
        guarded([&](const char* text) { duckdb_replacement_scan_set_error(info, text); },
                [&] { replace(info, table_name, data); });
      },
      nullptr, nullptr);
}

}  // namespace iac::duckdb
