#include "copy_options.h"

#include <iac/error.h>

#include <nlohmann/json.hpp>

#include "types.h"

namespace iac::duckdb {
namespace {

using nlohmann::json;

Error bad(const std::string& option, const std::string& reason) {
  return {Error::Kind::argument, "COPY option " + option + ": " + reason};
}

duckdb_type type_of(duckdb_value value) {
  return duckdb_get_type_id(duckdb_get_value_type(value));  // which is the value's own
}

std::string text(const std::string& option, duckdb_value value) {
  if (duckdb_is_null_value(value) || type_of(value) != DUCKDB_TYPE_VARCHAR) {
    throw bad(option, "expected a text");
  }
  std::string found = take_text(duckdb_get_varchar(value));
  if (found.empty()) throw bad(option, "the text is empty");
  return found;
}

// A single name may stand without a list.
std::vector<std::string> names(const std::string& option, duckdb_value value) {
  if (!duckdb_is_null_value(value) && type_of(value) == DUCKDB_TYPE_LIST) {
    std::vector<std::string> found;
    for (idx_t i = 0; i < duckdb_get_list_size(value); ++i) {
      const Value item(duckdb_get_list_child(value, i));
      found.push_back(text(option, item.get()));
    }
    return found;
  }
  return {text(option, value)};
}

// An option of its name alone is a switch that is turned on.
json parameter(const std::string& option, duckdb_value value) {
  if (duckdb_is_null_value(value)) return true;
  switch (type_of(value)) {
    case DUCKDB_TYPE_BOOLEAN:
      return duckdb_get_bool(value);
    case DUCKDB_TYPE_TINYINT:
    case DUCKDB_TYPE_SMALLINT:
    case DUCKDB_TYPE_INTEGER:
    case DUCKDB_TYPE_BIGINT:
      return duckdb_get_int64(value);
    case DUCKDB_TYPE_UTINYINT:
    case DUCKDB_TYPE_USMALLINT:
    case DUCKDB_TYPE_UINTEGER:
    case DUCKDB_TYPE_UBIGINT:
      return duckdb_get_uint64(value);
    case DUCKDB_TYPE_FLOAT:
    case DUCKDB_TYPE_DOUBLE:
    case DUCKDB_TYPE_DECIMAL:
    case DUCKDB_TYPE_HUGEINT:
      return duckdb_get_double(value);
    case DUCKDB_TYPE_VARCHAR: {
      std::string word = take_text(duckdb_get_varchar(value));
      const std::string lower = lower_case(word);
      if (lower == "true" || lower == "false") return lower == "true";
      return word;
    }
    default:
      throw bad(option, "expected a number, a text, true or false");
  }
}

}  // namespace

CopyOptions CopyOptions::read(duckdb_value options) {
  CopyOptions read;
  const duckdb_logical_type type = duckdb_get_value_type(options);
  if (duckdb_get_type_id(type) != DUCKDB_TYPE_STRUCT) return read;
  json params = json::object();
  for (idx_t i = 0; i < duckdb_struct_type_child_count(type); ++i) {
    const std::string name = take_text(duckdb_struct_type_child_name(type, i));
    const Value value(duckdb_get_struct_child(options, i));
    if (name == "CODEC") {
      read.codec = lower_case(text(name, value.get()));
    } else if (name == "PAYLOAD_TYPE") {
      read.payload_type = text(name, value.get());
    } else if (name == "COLUMNS") {
      read.columns = names(name, value.get());
    } else if (name == "SLIDE_COLUMNS") {
      read.slide_columns = names(name, value.get());
    } else {
      params[lower_case(name)] = parameter(name, value.get());
    }
  }
  read.codec_params = params.dump();
  return read;
}

}  // namespace iac::duckdb
