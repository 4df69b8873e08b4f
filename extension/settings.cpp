#include "settings.h"

#include <algorithm>
#include <stdexcept>

namespace iac::duckdb {

static constexpr int64_t default_max_batch_bytes = int64_t{1} << 30;

static Value setting(duckdb_client_context context, const char* name) {
  duckdb_config_option_scope scope;
  return Value(duckdb_client_context_get_config_option(context, name, &scope));
}

static int64_t integer_setting(duckdb_client_context context, const char* name, int64_t otherwise) {
  const Value value = setting(context, name);
  if (!value || duckdb_is_null_value(value.get())) return otherwise;
  return duckdb_get_int64(value.get());
}

uint64_t max_batch_bytes(duckdb_client_context context) {
  const int64_t bytes = integer_setting(context, max_batch_bytes_setting, default_max_batch_bytes);
  return static_cast<uint64_t>(std::max<int64_t>(bytes, 1));
}

unsigned duckdb_threads(duckdb_client_context context) {
  return static_cast<unsigned>(
      std::clamp<int64_t>(integer_setting(context, "threads", 1), 1, 4096));
}

std::string text_setting(duckdb_client_context context, const char* name) {
  const Value value = setting(context, name);
  if (!value || duckdb_is_null_value(value.get())) return "";
  return take_text(duckdb_get_varchar(value.get()));
}

void register_settings(duckdb_connection connection) {
  const Handle<duckdb_config_option> option(duckdb_create_config_option());
  const LogicalType type = logical_type(DUCKDB_TYPE_BIGINT);
  const Value value(duckdb_create_int64(default_max_batch_bytes));
  duckdb_config_option_set_name(option.get(), max_batch_bytes_setting);
  duckdb_config_option_set_type(option.get(), type.get());
  duckdb_config_option_set_default_value(option.get(), value.get());
  duckdb_config_option_set_default_scope(option.get(), DUCKDB_CONFIG_OPTION_SCOPE_SESSION);
  duckdb_config_option_set_description(
      option.get(), "Bytes of payloads that iac_payload, iac_stored and iac_text may give at once");
  if (duckdb_register_config_option(connection, option.get()) != DuckDBSuccess) {
    throw std::runtime_error(std::string("cannot register the setting ") + max_batch_bytes_setting);
  }
}

}  // namespace iac::duckdb
