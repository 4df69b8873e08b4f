#include "copy_types.h"

#include <iac/error.h>

#include "values.h"

namespace iac::duckdb {
namespace {

// Readers of Arrow streams give up on types that are nested deeper.
constexpr int max_depth = 60;
// Of a union, whose type codes are signed bytes.
constexpr idx_t max_members = 127;

StoredType stored_type(duckdb_logical_type logical, ArrowSchema& field, int depth);

Error unsupported(const std::string& type, const std::string& advice) {
  return {Error::Kind::argument, "a pack cannot hold values of type " + type + ", " + advice};
}

StoredType appended_by(StoredType::Append* append, duckdb_type id, size_t width = 0) {
  StoredType stored;
  stored.id = id;
  stored.append = append;
  stored.width = width;
  return stored;
}

StoredType plain(duckdb_type id, ArrowType type, StoredType::Append* append, size_t width,
                 ArrowSchema& field) {
  require(ArrowSchemaSetType(&field, type));
  return appended_by(append, id, width);
}

StoredType timed(duckdb_type id, ArrowType type, ArrowTimeUnit unit, StoredType::Append* append,
                 ArrowSchema& field, const char* zone = nullptr) {
  require(ArrowSchemaSetTypeDateTime(&field, type, unit, zone));
  return appended_by(append, id, sizeof(int64_t));
}

size_t width_of(duckdb_type id) {
  switch (id) {
    case DUCKDB_TYPE_UTINYINT:
      return 1;
    case DUCKDB_TYPE_SMALLINT:
    case DUCKDB_TYPE_USMALLINT:
      return 2;
    case DUCKDB_TYPE_INTEGER:
    case DUCKDB_TYPE_UINTEGER:
      return 4;
    case DUCKDB_TYPE_BIGINT:
      return 8;
    default:
      return 16;
  }
}

StoredType decimal(duckdb_logical_type logical, ArrowSchema& field, StoredType::Append* append) {
  const duckdb_type id = duckdb_get_type_id(logical);
  const bool is_decimal = id == DUCKDB_TYPE_DECIMAL;
  const int width = is_decimal ? duckdb_decimal_width(logical) : 38;
  const int scale = is_decimal ? duckdb_decimal_scale(logical) : 0;
  require(ArrowSchemaSetTypeDecimal(&field, NANOARROW_TYPE_DECIMAL128, width, scale));
  return appended_by(append, id, is_decimal ? width_of(duckdb_decimal_internal_type(logical)) : 16);
}

StoredType enumeration(duckdb_logical_type logical, ArrowSchema& field) {
  StoredType stored = plain(DUCKDB_TYPE_ENUM, NANOARROW_TYPE_STRING, append_enum,
                            width_of(duckdb_enum_internal_type(logical)), field);
  for (uint32_t i = 0; i < duckdb_enum_dictionary_size(logical); ++i) {
    stored.texts.push_back(take_text(duckdb_enum_dictionary_value(logical, i)));
  }
  return stored;
}

StoredType list(const LogicalType& child, ArrowSchema& field, int depth) {
  StoredType stored = plain(DUCKDB_TYPE_LIST, NANOARROW_TYPE_LIST, append_list, 0, field);
  stored.children.push_back(stored_type(child.get(), *field.children[0], depth));
  return stored;
}

StoredType array(duckdb_logical_type logical, ArrowSchema& field, int depth) {
  StoredType stored = appended_by(append_array, DUCKDB_TYPE_ARRAY);
  stored.size = duckdb_array_type_array_size(logical);
  require(ArrowSchemaSetTypeFixedSize(&field, NANOARROW_TYPE_FIXED_SIZE_LIST,
                                      static_cast<int32_t>(stored.size)));
  const LogicalType child(duckdb_array_type_child_type(logical));
  stored.children.push_back(stored_type(child.get(), *field.children[0], depth));
  return stored;
}

// The children that a struct or a union has by name; `type_at` and `name_at` are its functions.
void add_named(StoredType& stored, duckdb_logical_type logical, ArrowSchema& field, int depth,
               duckdb_logical_type (*type_at)(duckdb_logical_type, idx_t),
               char* (*name_at)(duckdb_logical_type, idx_t)) {
  for (int64_t i = 0; i < field.n_children; ++i) {
    const auto at = static_cast<idx_t>(i);
    const LogicalType child(type_at(logical, at));
    stored.children.push_back(stored_type(child.get(), *field.children[i], depth));
    require(ArrowSchemaSetName(field.children[i], take_text(name_at(logical, at)).c_str()));
  }
}

StoredType structure(duckdb_logical_type logical, ArrowSchema& field, int depth) {
  StoredType stored = appended_by(append_struct, DUCKDB_TYPE_STRUCT);
  const idx_t count = duckdb_struct_type_child_count(logical);
  require(ArrowSchemaSetTypeStruct(&field, static_cast<int64_t>(count)));
  add_named(stored, logical, field, depth, duckdb_struct_type_child_type,
            duckdb_struct_type_child_name);
  return stored;
}

StoredType map(duckdb_logical_type logical, ArrowSchema& field, int depth) {
  StoredType stored = plain(DUCKDB_TYPE_MAP, NANOARROW_TYPE_MAP, append_list, 0, field);
  StoredType entries = appended_by(append_struct, DUCKDB_TYPE_STRUCT);
  const LogicalType key(duckdb_map_type_key_type(logical)),
      value(duckdb_map_type_value_type(logical));
  ArrowSchema& fields = *field.children[0];
  entries.children.push_back(stored_type(key.get(), *fields.children[0], depth));
  entries.children.push_back(stored_type(value.get(), *fields.children[1], depth));
  stored.children.push_back(std::move(entries));
  return stored;
}

StoredType union_of(duckdb_logical_type logical, ArrowSchema& field, int depth) {
  StoredType stored = appended_by(append_union, DUCKDB_TYPE_UNION);
  const idx_t count = duckdb_union_type_member_count(logical);
  if (count > max_members) throw unsupported("UNION with more than 127 members", "use a STRUCT");
  require(
      ArrowSchemaSetTypeUnion(&field, NANOARROW_TYPE_SPARSE_UNION, static_cast<int64_t>(count)));
  add_named(stored, logical, field, depth, duckdb_union_type_member_type,
            duckdb_union_type_member_name);
  return stored;
}

const char* name_of(duckdb_type id) {
  switch (id) {
    case DUCKDB_TYPE_BIT:
      return "BIT";
    case DUCKDB_TYPE_TIME_TZ:
      return "TIME WITH TIME ZONE";
    case DUCKDB_TYPE_BIGNUM:
      return "BIGNUM";
    case DUCKDB_TYPE_GEOMETRY:
      return "GEOMETRY";
    case DUCKDB_TYPE_VARIANT:
      return "VARIANT";
    default:
      return nullptr;
  }
}

StoredType stored_type(duckdb_logical_type logical, ArrowSchema& field, int depth) {
  if (depth > max_depth) throw unsupported("that is nested so deep", "store its parts");
  const duckdb_type id = duckdb_get_type_id(logical);
  switch (id) {
    case DUCKDB_TYPE_SQLNULL:
      return plain(id, NANOARROW_TYPE_NA, append_null, 0, field);
    case DUCKDB_TYPE_BOOLEAN:
      return plain(id, NANOARROW_TYPE_BOOL, append_bool, 1, field);
    case DUCKDB_TYPE_TINYINT:
      return plain(id, NANOARROW_TYPE_INT8, append_8_bits, 1, field);
    case DUCKDB_TYPE_SMALLINT:
      return plain(id, NANOARROW_TYPE_INT16, append_16_bits, 2, field);
    case DUCKDB_TYPE_INTEGER:
      return plain(id, NANOARROW_TYPE_INT32, append_32_bits, 4, field);
    case DUCKDB_TYPE_BIGINT:
      return plain(id, NANOARROW_TYPE_INT64, append_64_bits, 8, field);
    case DUCKDB_TYPE_UTINYINT:
      return plain(id, NANOARROW_TYPE_UINT8, append_8_bits, 1, field);
    case DUCKDB_TYPE_USMALLINT:
      return plain(id, NANOARROW_TYPE_UINT16, append_16_bits, 2, field);
    case DUCKDB_TYPE_UINTEGER:
      return plain(id, NANOARROW_TYPE_UINT32, append_32_bits, 4, field);
    case DUCKDB_TYPE_UBIGINT:
      return plain(id, NANOARROW_TYPE_UINT64, append_64_bits, 8, field);
    case DUCKDB_TYPE_FLOAT:
      return plain(id, NANOARROW_TYPE_FLOAT, append_32_bits, 4, field);
    case DUCKDB_TYPE_DOUBLE:
      return plain(id, NANOARROW_TYPE_DOUBLE, append_64_bits, 8, field);
    case DUCKDB_TYPE_HUGEINT:
      return decimal(logical, field, append_hugeint);
    case DUCKDB_TYPE_UHUGEINT:
      return decimal(logical, field, append_uhugeint);
    case DUCKDB_TYPE_DECIMAL:
      return decimal(logical, field, append_decimal);
    case DUCKDB_TYPE_VARCHAR:
      return plain(id, NANOARROW_TYPE_STRING, append_string, 0, field);
    case DUCKDB_TYPE_BLOB:
      return plain(id, NANOARROW_TYPE_BINARY, append_string, 0, field);
    case DUCKDB_TYPE_ENUM:
      return enumeration(logical, field);
    case DUCKDB_TYPE_UUID:
      return plain(id, NANOARROW_TYPE_STRING, append_uuid, 16, field);
    case DUCKDB_TYPE_DATE:
      return plain(id, NANOARROW_TYPE_DATE32, append_32_bits, 4, field);
    case DUCKDB_TYPE_TIME:
      return timed(id, NANOARROW_TYPE_TIME64, NANOARROW_TIME_UNIT_MICRO, append_time, field);
    case DUCKDB_TYPE_TIME_NS:
      return timed(id, NANOARROW_TYPE_TIME64, NANOARROW_TIME_UNIT_NANO, append_time_ns, field);
    case DUCKDB_TYPE_TIMESTAMP_S:
      return timed(id, NANOARROW_TYPE_TIMESTAMP, NANOARROW_TIME_UNIT_SECOND, append_64_bits, field);
    case DUCKDB_TYPE_TIMESTAMP_MS:
      return timed(id, NANOARROW_TYPE_TIMESTAMP, NANOARROW_TIME_UNIT_MILLI, append_64_bits, field);
    case DUCKDB_TYPE_TIMESTAMP:
      return timed(id, NANOARROW_TYPE_TIMESTAMP, NANOARROW_TIME_UNIT_MICRO, append_64_bits, field);
    case DUCKDB_TYPE_TIMESTAMP_NS:
      return timed(id, NANOARROW_TYPE_TIMESTAMP, NANOARROW_TIME_UNIT_NANO, append_64_bits, field);
    case DUCKDB_TYPE_TIMESTAMP_TZ:
      return timed(id, NANOARROW_TYPE_TIMESTAMP, NANOARROW_TIME_UNIT_MICRO, append_64_bits, field,
                   "UTC");
    case DUCKDB_TYPE_INTERVAL:
      return plain(id, NANOARROW_TYPE_INTERVAL_MONTH_DAY_NANO, append_interval,
                   sizeof(duckdb_interval), field);
    case DUCKDB_TYPE_LIST:
      return list(LogicalType(duckdb_list_type_child_type(logical)), field, depth + 1);
    case DUCKDB_TYPE_ARRAY:
      return array(logical, field, depth + 1);
    case DUCKDB_TYPE_STRUCT:
      return structure(logical, field, depth + 1);
    case DUCKDB_TYPE_MAP:
      return map(logical, field, depth + 2);
    case DUCKDB_TYPE_UNION:
      return union_of(logical, field, depth + 1);
    default: {
      const char* name = name_of(id);
      throw unsupported(name != nullptr ? name : "number " + std::to_string(id),
                        "cast them, to VARCHAR for example");
    }
  }
}

void append_bytes(const void* bytes, size_t size, std::string& key) {
  key.append(static_cast<const char*>(bytes), size);
}

void append_length(uint64_t length, std::string& key) { append_bytes(&length, sizeof length, key); }

}  // namespace

StoredType stored_type(duckdb_logical_type logical, ArrowSchema& field) {
  return stored_type(logical, field, 1);
}

void append_key(const StoredType& type, duckdb_vector vector, int64_t row, std::string& key) {
  const bool valid = type.id != DUCKDB_TYPE_SQLNULL &&
                     is_valid(duckdb_vector_get_validity(vector), static_cast<size_t>(row));
  key += valid ? '\1' : '\0';
  if (!valid) return;
  if (type.width > 0) {
    const auto* data = static_cast<const char*>(duckdb_vector_get_data(vector));
    return append_bytes(data + static_cast<size_t>(row) * type.width, type.width, key);
  }
  const auto append_children = [&](duckdb_vector child, uint64_t first, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      append_key(type.children[0], child, static_cast<int64_t>(first + i), key);
    }
  };
  switch (type.id) {
    case DUCKDB_TYPE_LIST:
    case DUCKDB_TYPE_MAP: {
      const auto entry = static_cast<const duckdb_list_entry*>(duckdb_vector_get_data(vector))[row];
      append_length(entry.length, key);
      return append_children(duckdb_list_vector_get_child(vector), entry.offset, entry.length);
    }
    case DUCKDB_TYPE_ARRAY:
      return append_children(duckdb_array_vector_get_child(vector),
                             static_cast<uint64_t>(row) * type.size, type.size);
    case DUCKDB_TYPE_STRUCT:
      for (size_t i = 0; i < type.children.size(); ++i) {
        append_key(type.children[i], duckdb_struct_vector_get_child(vector, i), row, key);
      }
      return;
    case DUCKDB_TYPE_UNION: {
      const duckdb_vector tags = duckdb_struct_vector_get_child(vector, 0);
      const auto tag = static_cast<const uint8_t*>(duckdb_vector_get_data(tags))[row];
      key += static_cast<char>(tag);
      return append_key(type.children[tag], duckdb_struct_vector_get_child(vector, tag + idx_t{1}),
                        row, key);
    }
    default: {
      const auto text = text_of(strings_of(vector)[row]);
      append_length(text.size(), key);
      append_bytes(text.data(), text.size(), key);
    }
  }
}

}  // namespace iac::duckdb
