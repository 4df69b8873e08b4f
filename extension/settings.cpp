#include "settings.h"

#include <iac/error.h>

#include <algorithm>
#include <cmath>

namespace iac::duckdb {
namespace {

constexpr const char* threads_setting = "iac_threads";
constexpr const char* verify_setting = "iac_verify";
constexpr const char* max_record_bytes_setting = "iac_max_record_bytes";
constexpr const char* cache_packs_setting = "iac_cache_packs";
constexpr const char* root_setting = "iac_root";

constexpr int64_t max_threads = 4096;

// A number with its bounds; a flag, whose bounds are 0 and 1; or text, which has none.
struct Setting {
  const char* name;
  duckdb_type type;
  int64_t standard, least, most;
  const char* description;
};

constexpr Setting settings[] = {
    {threads_setting, DUCKDB_TYPE_BIGINT, 0, 0, max_threads,
     "Threads that read and decode payloads in one call; 0: as many as DuckDB may use"},
    {verify_setting, DUCKDB_TYPE_BOOLEAN, 1, 0, 1,
     "Whether payload functions compare stored bytes with their crc32"},
    {max_record_bytes_setting, DUCKDB_TYPE_BIGINT, int64_t{2} << 30, 1, INT64_MAX,
     "Bytes that one decoded record may have"},
    {max_batch_bytes_setting, DUCKDB_TYPE_BIGINT, int64_t{1} << 30, 1, INT64_MAX,
     "Bytes of payloads that a payload function may give for one vector of rows"},
    {cache_packs_setting, DUCKDB_TYPE_BIGINT, 128, 0, INT64_MAX,
     "Packs that stay open between queries"},
    {root_setting, DUCKDB_TYPE_VARCHAR, 0, 0, 0,
     "Folder in which packs that are no longer at the path of a reference are looked for"},
};

const Setting& find(const char* name) {
  return *std::find_if(std::begin(settings), std::end(settings), [&](const Setting& setting) {
    return std::string_view(setting.name) == name;
  });
}

Value value_of(duckdb_client_context context, const char* name) {
  duckdb_config_option_scope scope;
  return Value(duckdb_client_context_get_config_option(context, name, &scope));
}

bool is_set(const Value& value) { return value && !duckdb_is_null_value(value.get()); }

int64_t number(duckdb_client_context context, const char* name) {
  const Setting& setting = find(name);
  const Value value = value_of(context, name);
  if (!is_set(value)) return setting.standard;
  const int64_t found = duckdb_get_int64(value.get());
  if (found >= setting.least && found <= setting.most) return found;
  throw Error(Error::Kind::argument,
              std::string("the setting ") + name + " is " + std::to_string(found) +
                  ", expected a number from " + std::to_string(setting.least) +
                  (setting.most == INT64_MAX ? " up" : " to " + std::to_string(setting.most)));
}

bool flag(duckdb_client_context context, const char* name) {
  const Value value = value_of(context, name);
  return is_set(value) ? duckdb_get_bool(value.get()) : find(name).standard != 0;
}

Value standard_value(const Setting& setting) {
  switch (setting.type) {
    case DUCKDB_TYPE_BOOLEAN:
      return Value(duckdb_create_bool(setting.standard != 0));
    case DUCKDB_TYPE_VARCHAR:
      return Value(duckdb_create_varchar(""));
    default:
      return Value(duckdb_create_int64(setting.standard));
  }
}

}  // namespace

unsigned duckdb_threads(duckdb_client_context context) {
  const Value value = value_of(context, "threads");
  const int64_t threads = is_set(value) ? duckdb_get_int64(value.get()) : 1;
  return static_cast<unsigned>(std::clamp<int64_t>(threads, 1, max_threads));
}

ReadSettings read_settings(duckdb_client_context context) {
  ReadSettings read;
  const auto threads = static_cast<unsigned>(number(context, threads_setting));
  read.threads = threads != 0 ? threads : duckdb_threads(context);
  read.verify = flag(context, verify_setting);
  read.max_record_bytes = static_cast<uint64_t>(number(context, max_record_bytes_setting));
  read.max_batch_bytes = static_cast<uint64_t>(number(context, max_batch_bytes_setting));
  return read;
}

ReadOptions ReadSettings::options() const {
  ReadOptions options;
  options.workers = threads;
  options.verify = verify;
  options.limits.record_bytes = max_record_bytes;
  options.limits.batch_bytes = max_batch_bytes;
  options.limits.record_bytes_option = max_record_bytes_setting;
  options.limits.image_samples_option = "max_samples of iac_query.decode()";
  return options;
}

size_t cache_packs(duckdb_client_context context) {
  return static_cast<size_t>(number(context, cache_packs_setting));
}

// DuckDB gives it as text: 12.5 GiB.
uint64_t memory_limit(duckdb_client_context context) {
  const std::string text = text_setting(context, "memory_limit");
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t end = 0;
  double size = 0;
  try {
    size = std::stod(text, &end);
  } catch (const std::exception&) {
    return UINT64_MAX;
  }
  const std::string unit = text.substr(std::min(text.find_first_not_of(' ', end), text.size()));
  const auto* const found = std::find(std::begin(units), std::end(units), unit);
  if (found == std::end(units)) return UINT64_MAX;
  size = std::ldexp(size, static_cast<int>(10 * (found - std::begin(units))));
  return size < std::ldexp(1.0, 63) ? static_cast<uint64_t>(size) : UINT64_MAX;
}

bool external_access(duckdb_client_context context) {
  const Value value = value_of(context, "enable_external_access");
  return is_set(value) && duckdb_get_bool(value.get());
}

std::string root_folder(duckdb_client_context context) {
  return text_setting(context, root_setting);
}

std::string text_setting(duckdb_client_context context, const char* name) {
  const Value value = value_of(context, name);
  return is_set(value) ? take_text(duckdb_get_varchar(value.get())) : "";
}

void register_settings(duckdb_connection connection) {
  for (const Setting& setting : settings) {
    const Handle<duckdb_config_option> option(duckdb_create_config_option());
    const LogicalType type = logical_type(setting.type);
    const Value value = standard_value(setting);
    duckdb_config_option_set_name(option.get(), setting.name);
    duckdb_config_option_set_type(option.get(), type.get());
    duckdb_config_option_set_default_value(option.get(), value.get());
    duckdb_config_option_set_default_scope(option.get(), DUCKDB_CONFIG_OPTION_SCOPE_SESSION);
    duckdb_config_option_set_description(option.get(), setting.description);
    if (duckdb_register_config_option(connection, option.get()) != DuckDBSuccess) {
      throw Error(Error::Kind::argument,
                  std::string("cannot register the setting ") + setting.name);
    }
  }
}

}  // namespace iac::duckdb
