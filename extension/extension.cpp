// The entry point that DuckDB calls at LOAD. Nothing is written to the user's database.
#include "functions.h"
#include "handles.h"
#include "settings.h"

DUCKDB_EXTENSION_ENTRYPOINT(duckdb_connection connection, duckdb_extension_info info,
                            duckdb_extension_access* access) {
  bool registered = false;
  iac::duckdb::guarded([&](const char* text) { access->set_error(info, text); },
                       [&] {
                         iac::duckdb::register_settings(connection);
                         iac::duckdb::register_scan(connection);
                         iac::duckdb::register_payload(connection);
                         iac::duckdb::register_stored(connection);
                         iac::duckdb::register_text(connection);
                         iac::duckdb::register_docs(connection);
                         iac::duckdb::register_image(connection);
                         iac::duckdb::register_tags(connection);
                         iac::duckdb::register_hu(connection);
                         iac::duckdb::register_vector(connection);
                         iac::duckdb::register_verify(connection);
                         iac::duckdb::register_info(connection);
                         iac::duckdb::register_check(connection);
                         iac::duckdb::register_copy(connection);
                         iac::duckdb::register_file_names(*access->get_database(info));
                         registered = true;
                       });
  return registered;
}
