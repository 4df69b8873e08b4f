#include "record.h"

#include <iac/error.h>

#include <algorithm>
#include <numeric>

#include "strings.h"
#include "types.h"
#include "values.h"

namespace iac::duckdb {
namespace {

Error no_reference(const std::string& problem) {
  return {Error::Kind::argument,
          "expected a record, STRUCT(pack VARCHAR, row BIGINT, stamp UINTEGER): " + problem};
}

}  // namespace

LogicalType record_type() {
  const LogicalType text = logical_type(DUCKDB_TYPE_VARCHAR);
  const LogicalType row = logical_type(DUCKDB_TYPE_BIGINT);
  const LogicalType stamp = logical_type(DUCKDB_TYPE_UINTEGER);
  duckdb_logical_type types[] = {text.get(), row.get(), stamp.get()};
  const char* names[] = {"pack", "row", "stamp"};
  return LogicalType(duckdb_create_struct_type(types, names, std::size(types)));
}

void fill_records(const Pack& pack, int64_t first, size_t count, duckdb_vector vector) {
  fill_text(pack.path(), count, duckdb_struct_vector_get_child(vector, 0));

  auto* rows =
      static_cast<int64_t*>(duckdb_vector_get_data(duckdb_struct_vector_get_child(vector, 1)));
  std::iota(rows, rows + count, first);

  const std::vector<uint32_t> stamps = pack.stamps({rows, count});
  std::copy(
      stamps.begin(), stamps.end(),
      static_cast<uint32_t*>(duckdb_vector_get_data(duckdb_struct_vector_get_child(vector, 2))));
}

ReferenceReader::ReferenceReader(duckdb_logical_type type) {
  const duckdb_type id = duckdb_get_type_id(type);
  is_null_ = id == DUCKDB_TYPE_SQLNULL;
  if (is_null_) return;
  if (id != DUCKDB_TYPE_STRUCT) throw no_reference("this is no struct");

  std::optional<Field> pack, row;
  for (idx_t i = 0; i < duckdb_struct_type_child_count(type); ++i) {
    const std::string name = lower_case(take_text(duckdb_struct_type_child_name(type, i)));
    const LogicalType child(duckdb_struct_type_child_type(type, i));
    const Field field{i, duckdb_get_type_id(child.get())};
    if (name == "pack") pack = field;
    if (name == "row") row = field;
    if (name == "stamp") stamp_ = field;
    if (name != "pack" || field.type != DUCKDB_TYPE_ENUM) continue;
    dictionary_index_ = duckdb_enum_internal_type(child.get());
    for (uint32_t k = 0; k < duckdb_enum_dictionary_size(child.get()); ++k) {
      dictionary_.push_back(take_text(duckdb_enum_dictionary_value(child.get(), k)));
    }
  }
  const auto is_nullable_integer = [](const Field& field) {
    return is_integer(field.type) || field.type == DUCKDB_TYPE_SQLNULL;
  };
  if (!pack) throw no_reference("it has no field pack");
  if (!row) throw no_reference("it has no field row");
  const bool is_text = pack->type == DUCKDB_TYPE_VARCHAR || pack->type == DUCKDB_TYPE_ENUM ||
                       pack->type == DUCKDB_TYPE_SQLNULL;
  if (!is_text) throw no_reference("its field pack is no text");
  if (!is_nullable_integer(*row)) throw no_reference("its field row is no integer");
  if (stamp_ && !is_nullable_integer(*stamp_)) throw no_reference("its field stamp is no integer");
  pack_ = *pack;
  row_ = *row;
}

std::vector<std::optional<Reference>> ReferenceReader::read(duckdb_vector vector,
                                                            size_t count) const {
  std::vector<std::optional<Reference>> references(count);
  if (is_null_) return references;
  struct Child {
    const void* data;
    const uint64_t* validity;
  };
  const auto child = [&](const Field& field) {
    const duckdb_vector child = duckdb_struct_vector_get_child(vector, field.position);
    return Child{duckdb_vector_get_data(child), duckdb_vector_get_validity(child)};
  };
  const uint64_t* validity = duckdb_vector_get_validity(vector);
  const Child packs = child(pack_), rows = child(row_);
  const Child stamps = stamp_ ? child(*stamp_) : Child{};
  if (pack_.type == DUCKDB_TYPE_SQLNULL || row_.type == DUCKDB_TYPE_SQLNULL) return references;
  const bool has_stamps = stamp_ && stamp_->type != DUCKDB_TYPE_SQLNULL;
  for (size_t i = 0; i < count; ++i) {
    if (!is_valid(validity, i) || !is_valid(packs.validity, i) || !is_valid(rows.validity, i)) {
      continue;
    }
    Reference reference;
    if (pack_.type == DUCKDB_TYPE_ENUM) {
      reference.pack = dictionary_[static_cast<size_t>(
          integer_at(packs.data, dictionary_index_, i, "a record's pack"))];
    } else {
      reference.pack = text_of(static_cast<const duckdb_string_t*>(packs.data)[i]);
    }
    reference.row = integer_at(rows.data, row_.type, i, "a record's row");
    if (has_stamps && is_valid(stamps.validity, i)) {
      reference.stamp = integer_at(stamps.data, stamp_->type, i, "a record's stamp");
    }
    references[i] = reference;
  }
  return references;
}

}  // namespace iac::duckdb
