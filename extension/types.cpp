#include "types.h"

#include <iac/error.h>

#include <algorithm>

namespace iac::duckdb {
namespace {

constexpr int64_t seconds_a_day = 86'400;
constexpr int64_t max_array_size = 100'000;  // of DuckDB's ARRAY

Error unsupported(const std::string& what) {
  return {Error::Kind::argument, "DuckDB has no type for " + what};
}

ValueType simple(duckdb_type id, ValueType::Fill* fill) {
  ValueType type;
  type.logical = logical_type(id);
  type.fill = fill;
  return type;
}

int64_t units_a_second(ArrowTimeUnit unit) {
  switch (unit) {
    case NANOARROW_TIME_UNIT_SECOND:
      return 1;
    case NANOARROW_TIME_UNIT_MILLI:
      return 1'000;
    case NANOARROW_TIME_UNIT_MICRO:
      return 1'000'000;
    default:
      return 1'000'000'000;
  }
}

// From `unit` to the microseconds of DuckDB's intervals, times and timestamps with a zone.
ValueType in_microseconds(duckdb_type id, ValueType::Fill* fill, ArrowTimeUnit unit) {
  constexpr int64_t microseconds = 1'000'000;
  ValueType type = simple(id, fill);
  const int64_t units = units_a_second(unit);
  type.factor = std::max<int64_t>(microseconds / units, 1);
  type.divisor = std::max<int64_t>(units / microseconds, 1);
  return type;
}

ValueType time_type(const ArrowSchemaView& view) {
  ValueType type =
      view.time_unit == NANOARROW_TIME_UNIT_NANO
          ? simple(DUCKDB_TYPE_TIME_NS, fill_time64)
          : in_microseconds(DUCKDB_TYPE_TIME,
                            view.type == NANOARROW_TYPE_TIME32 ? fill_time32 : fill_time64,
                            view.time_unit);
  type.limit = seconds_a_day * units_a_second(view.time_unit);
  return type;
}

ValueType timestamp_type(const ArrowSchemaView& view) {
  if (view.timezone != nullptr && view.timezone[0] != '\0') {
    return in_microseconds(DUCKDB_TYPE_TIMESTAMP_TZ, fill_timestamp_tz, view.time_unit);
  }
  switch (view.time_unit) {
    case NANOARROW_TIME_UNIT_SECOND:
      return simple(DUCKDB_TYPE_TIMESTAMP_S, fill_64_bits);
    case NANOARROW_TIME_UNIT_MILLI:
      return simple(DUCKDB_TYPE_TIMESTAMP_MS, fill_64_bits);
    case NANOARROW_TIME_UNIT_MICRO:
      return simple(DUCKDB_TYPE_TIMESTAMP, fill_64_bits);
    default:
      return simple(DUCKDB_TYPE_TIMESTAMP_NS, fill_64_bits);
  }
}

ValueType decimal_type(const ArrowSchemaView& view, ValueType::Fill* fill) {
  const int32_t width = view.decimal_precision, scale = view.decimal_scale;
  if (width < 1 || width > 38 || scale < 0 || scale > width) {
    throw unsupported("a decimal of precision " + std::to_string(width) + " and scale " +
                      std::to_string(scale));
  }
  ValueType type;
  type.logical = LogicalType(
      duckdb_create_decimal_type(static_cast<uint8_t>(width), static_cast<uint8_t>(scale)));
  type.fill = fill;
  type.limit = width;
  return type;
}

ValueType fixed_binary_type(const ArrowSchemaView& view) {
  ValueType type = simple(DUCKDB_TYPE_BLOB, fill_fixed_binary);
  type.limit = view.fixed_size;
  return type;
}

ValueType list_of(ValueType child, ValueType::Fill* fill) {
  ValueType type;
  type.logical = LogicalType(duckdb_create_list_type(child.logical.get()));
  type.fill = fill;
  type.children.push_back(std::move(child));
  return type;
}

ValueType fixed_list_type(const ArrowSchema& field, int64_t size) {
  ValueType child = value_type(*field.children[0]);
  ValueType type;
  if (size < 1 || size > max_array_size) {
    type = list_of(std::move(child), fill_fixed_list_as_list);
  } else {
    type.logical =
        LogicalType(duckdb_create_array_type(child.logical.get(), static_cast<idx_t>(size)));
    type.fill = fill_array;
    type.children.push_back(std::move(child));
  }
  type.limit = size;
  return type;
}

// A type of named members, made by `create`.
template <class Create>
ValueType of_members(const ArrowSchema& field, ValueType::Fill* fill, const char* what,
                     Create create) {
  if (field.n_children == 0) throw unsupported(std::string("a ") + what + " without members");
  ValueType type;
  type.fill = fill;
  UniqueNames unique;
  std::vector<std::string> names;
  std::vector<const char*> name_pointers;
  std::vector<duckdb_logical_type> members;
  for (int64_t i = 0; i < field.n_children; ++i) {
    const ArrowSchema& child = *field.children[i];
    names.push_back(unique.add(child.name != nullptr ? child.name : "", static_cast<size_t>(i)));
    type.children.push_back(value_type(child));
    members.push_back(type.children.back().logical.get());
  }
  for (const std::string& name : names) name_pointers.push_back(name.c_str());
  type.logical = LogicalType(create(members.data(), name_pointers.data(), members.size()));
  return type;
}

ValueType struct_type(const ArrowSchema& field) {
  return of_members(field, fill_struct, "struct",
                    [](duckdb_logical_type* types, const char** names, idx_t count) {
                      return duckdb_create_struct_type(types, names, count);
                    });
}

ValueType union_type(const ArrowSchema& field) {
  return of_members(field, fill_union, "union",
                    [](duckdb_logical_type* types, const char** names, idx_t count) {
                      return duckdb_create_union_type(types, names, count);
                    });
}

// The values of an encoded column are those of `values`.
ValueType encoded(const ArrowSchema& values, ValueType::Fill* fill) {
  ValueType child = value_type(values);
  ValueType type;
  std::swap(type.logical, child.logical);
  type.fill = fill;
  type.children.push_back(std::move(child));
  return type;
}

void require(ValueType& type) {
  type.required = true;
  const bool is_encoded = type.fill == fill_dictionary || type.fill == fill_run_ends;
  if (is_encoded) require(type.children[0]);
}

ValueType map_type(const ArrowSchema& field) {
  ValueType entries = struct_type(*field.children[0]);
  require(entries);
  require(entries.children[0]);
  ValueType type;
  type.logical = LogicalType(
      duckdb_create_map_type(entries.children[0].logical.get(), entries.children[1].logical.get()));
  type.fill = fill_list;
  type.children.push_back(std::move(entries));
  return type;
}

}  // namespace

ValueType value_type(const ArrowSchema& field) {
  if (field.dictionary != nullptr) return encoded(*field.dictionary, fill_dictionary);
  ArrowSchemaView view;
  ArrowError error;
  if (ArrowSchemaViewInit(&view, &field, &error) != NANOARROW_OK) throw unsupported(error.message);
  switch (view.type) {
    case NANOARROW_TYPE_NA:
      return simple(DUCKDB_TYPE_SQLNULL, fill_null);
    case NANOARROW_TYPE_BOOL:
      return simple(DUCKDB_TYPE_BOOLEAN, fill_bool);
    case NANOARROW_TYPE_INT8:
      return simple(DUCKDB_TYPE_TINYINT, fill_8_bits);
    case NANOARROW_TYPE_INT16:
      return simple(DUCKDB_TYPE_SMALLINT, fill_16_bits);
    case NANOARROW_TYPE_INT32:
      return simple(DUCKDB_TYPE_INTEGER, fill_32_bits);
    case NANOARROW_TYPE_INT64:
      return simple(DUCKDB_TYPE_BIGINT, fill_64_bits);
    case NANOARROW_TYPE_UINT8:
      return simple(DUCKDB_TYPE_UTINYINT, fill_8_bits);
    case NANOARROW_TYPE_UINT16:
      return simple(DUCKDB_TYPE_USMALLINT, fill_16_bits);
    case NANOARROW_TYPE_UINT32:
      return simple(DUCKDB_TYPE_UINTEGER, fill_32_bits);
    case NANOARROW_TYPE_UINT64:
      return simple(DUCKDB_TYPE_UBIGINT, fill_64_bits);
    case NANOARROW_TYPE_HALF_FLOAT:
      return simple(DUCKDB_TYPE_FLOAT, fill_half_float);
    case NANOARROW_TYPE_FLOAT:
      return simple(DUCKDB_TYPE_FLOAT, fill_32_bits);
    case NANOARROW_TYPE_DOUBLE:
      return simple(DUCKDB_TYPE_DOUBLE, fill_64_bits);
    case NANOARROW_TYPE_STRING:
      return simple(DUCKDB_TYPE_VARCHAR, fill_string);
    case NANOARROW_TYPE_LARGE_STRING:
      return simple(DUCKDB_TYPE_VARCHAR, fill_large_string);
    case NANOARROW_TYPE_STRING_VIEW:
      return simple(DUCKDB_TYPE_VARCHAR, fill_string_view);
    case NANOARROW_TYPE_BINARY:
      return simple(DUCKDB_TYPE_BLOB, fill_string);
    case NANOARROW_TYPE_LARGE_BINARY:
      return simple(DUCKDB_TYPE_BLOB, fill_large_string);
    case NANOARROW_TYPE_BINARY_VIEW:
      return simple(DUCKDB_TYPE_BLOB, fill_string_view);
    case NANOARROW_TYPE_FIXED_SIZE_BINARY:
      return fixed_binary_type(view);
    case NANOARROW_TYPE_DATE32:
      return simple(DUCKDB_TYPE_DATE, fill_32_bits);
    case NANOARROW_TYPE_DATE64:
      return simple(DUCKDB_TYPE_DATE, fill_date64);
    case NANOARROW_TYPE_TIME32:
    case NANOARROW_TYPE_TIME64:
      return time_type(view);
    case NANOARROW_TYPE_TIMESTAMP:
      return timestamp_type(view);
    case NANOARROW_TYPE_DURATION:
      return in_microseconds(DUCKDB_TYPE_INTERVAL, fill_duration, view.time_unit);
    case NANOARROW_TYPE_INTERVAL_MONTHS:
      return simple(DUCKDB_TYPE_INTERVAL, fill_interval_months);
    case NANOARROW_TYPE_INTERVAL_DAY_TIME:
      return simple(DUCKDB_TYPE_INTERVAL, fill_interval_day_time);
    case NANOARROW_TYPE_INTERVAL_MONTH_DAY_NANO:
      return simple(DUCKDB_TYPE_INTERVAL, fill_interval_month_day_nano);
    case NANOARROW_TYPE_DECIMAL32:
      return decimal_type(view, fill_decimal32);
    case NANOARROW_TYPE_DECIMAL64:
      return decimal_type(view, fill_decimal64);
    case NANOARROW_TYPE_DECIMAL128:
      return decimal_type(view, fill_decimal128);
    case NANOARROW_TYPE_LIST:
      return list_of(value_type(*field.children[0]), fill_list);
    case NANOARROW_TYPE_LARGE_LIST:
      return list_of(value_type(*field.children[0]), fill_large_list);
    case NANOARROW_TYPE_LIST_VIEW:
      return list_of(value_type(*field.children[0]), fill_list_view);
    case NANOARROW_TYPE_LARGE_LIST_VIEW:
      return list_of(value_type(*field.children[0]), fill_large_list_view);
    case NANOARROW_TYPE_FIXED_SIZE_LIST:
      return fixed_list_type(field, view.fixed_size);
    case NANOARROW_TYPE_STRUCT:
      return struct_type(field);
    case NANOARROW_TYPE_MAP:
      return map_type(field);
    case NANOARROW_TYPE_SPARSE_UNION:
    case NANOARROW_TYPE_DENSE_UNION:
      return union_type(field);
    case NANOARROW_TYPE_RUN_END_ENCODED:
      return encoded(*field.children[1], fill_run_ends);
    default:
      throw unsupported(ArrowTypeString(view.type));
  }
}

std::string type_text(const ArrowSchema& field) {
  std::string text = field.format;
  if (field.dictionary != nullptr) text += "[" + type_text(*field.dictionary) + "]";
  if (field.n_children > 0) {
    text += "(";
    for (int64_t i = 0; i < field.n_children; ++i) {
      const ArrowSchema& child = *field.children[i];
      text += (i > 0 ? "," : "") + std::string(child.name != nullptr ? child.name : "") + ":" +
              type_text(child);
    }
    text += ")";
  }
  return text;
}

static const char* simple_type_name(duckdb_type id) {
  switch (id) {
    case DUCKDB_TYPE_SQLNULL:
      return "NULL";
    case DUCKDB_TYPE_BOOLEAN:
      return "BOOLEAN";
    case DUCKDB_TYPE_TINYINT:
      return "TINYINT";
    case DUCKDB_TYPE_SMALLINT:
      return "SMALLINT";
    case DUCKDB_TYPE_INTEGER:
      return "INTEGER";
    case DUCKDB_TYPE_BIGINT:
      return "BIGINT";
    case DUCKDB_TYPE_UTINYINT:
      return "UTINYINT";
    case DUCKDB_TYPE_USMALLINT:
      return "USMALLINT";
    case DUCKDB_TYPE_UINTEGER:
      return "UINTEGER";
    case DUCKDB_TYPE_UBIGINT:
      return "UBIGINT";
    case DUCKDB_TYPE_FLOAT:
      return "FLOAT";
    case DUCKDB_TYPE_DOUBLE:
      return "DOUBLE";
    case DUCKDB_TYPE_VARCHAR:
      return "VARCHAR";
    case DUCKDB_TYPE_BLOB:
      return "BLOB";
    case DUCKDB_TYPE_DATE:
      return "DATE";
    case DUCKDB_TYPE_TIME:
      return "TIME";
    case DUCKDB_TYPE_TIME_NS:
      return "TIME_NS";
    case DUCKDB_TYPE_TIMESTAMP:
      return "TIMESTAMP";
    case DUCKDB_TYPE_TIMESTAMP_S:
      return "TIMESTAMP_S";
    case DUCKDB_TYPE_TIMESTAMP_MS:
      return "TIMESTAMP_MS";
    case DUCKDB_TYPE_TIMESTAMP_NS:
      return "TIMESTAMP_NS";
    case DUCKDB_TYPE_TIMESTAMP_TZ:
      return "TIMESTAMP WITH TIME ZONE";
    case DUCKDB_TYPE_INTERVAL:
      return "INTERVAL";
    default:
      return "another type";
  }
}

std::string type_name(duckdb_logical_type type) {
  const auto inner = [](duckdb_logical_type child) { return type_name(LogicalType(child).get()); };
  const auto members = [&](const char* kind, idx_t count, auto name_at, auto type_at) {
    std::string text = kind;
    for (idx_t i = 0; i < count; ++i) {
      text +=
          (i == 0 ? "(\"" : ", \"") + take_text(name_at(type, i)) + "\" " + inner(type_at(type, i));
    }
    return text + ")";
  };
  switch (const duckdb_type id = duckdb_get_type_id(type)) {
    case DUCKDB_TYPE_DECIMAL:
      return "DECIMAL(" + std::to_string(duckdb_decimal_width(type)) + "," +
             std::to_string(duckdb_decimal_scale(type)) + ")";
    case DUCKDB_TYPE_LIST:
      return inner(duckdb_list_type_child_type(type)) + "[]";
    case DUCKDB_TYPE_ARRAY:
      return inner(duckdb_array_type_child_type(type)) + "[" +
             std::to_string(duckdb_array_type_array_size(type)) + "]";
    case DUCKDB_TYPE_MAP:
      return "MAP(" + inner(duckdb_map_type_key_type(type)) + ", " +
             inner(duckdb_map_type_value_type(type)) + ")";
    case DUCKDB_TYPE_STRUCT:
      return members(
          "STRUCT", duckdb_struct_type_child_count(type),
          [](auto t, auto i) { return duckdb_struct_type_child_name(t, i); },
          [](auto t, auto i) { return duckdb_struct_type_child_type(t, i); });
    case DUCKDB_TYPE_UNION:
      return members(
          "UNION", duckdb_union_type_member_count(type),
          [](auto t, auto i) { return duckdb_union_type_member_name(t, i); },
          [](auto t, auto i) { return duckdb_union_type_member_type(t, i); });
    default:
      return simple_type_name(id);
  }
}

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string UniqueNames::add(std::string name, size_t position) {
  if (name.empty()) name = "v" + std::to_string(position);
  std::string unique = name;
  for (size_t n = 1; !taken_.insert(lower_case(unique)).second; ++n) {
    unique = name + "_" + std::to_string(n);
  }
  return unique;
}

}  // namespace iac::duckdb
