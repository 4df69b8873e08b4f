#include "columns.h"

#include <iac/dicom/headers.h>
#include <iac/error.h>

#include <algorithm>
#include <string_view>

#include "places.h"

namespace iac::duckdb {
namespace {

constexpr const char* patient_id_name = "patient_id";
constexpr std::string_view layout_names[] = {"offset", "length", "crc32"};

bool is_layout_column(const Pack& pack, std::string_view name) {
  return pack.layout().kind() == Layout::Kind::variable &&
         std::find(std::begin(layout_names), std::end(layout_names), name) !=
             std::end(layout_names);
}

bool has_column(const std::vector<PackColumn>& columns, const std::string& name) {
  return std::any_of(columns.begin(), columns.end(),
                     [&](const auto& column) { return lower_case(column.name) == name; });
}

// A field of text, as that of a table would be.
nanoarrow::UniqueSchema text_field() {
  nanoarrow::UniqueSchema field;
  if (ArrowSchemaInitFromType(field.get(), NANOARROW_TYPE_STRING) != NANOARROW_OK) {
    throw std::bad_alloc();
  }
  return field;
}

PackColumn table_column(PackColumn::Source source, const Table& table, size_t position,
                        UniqueNames& names) {
  const ArrowSchema& field = table.field(position);
  PackColumn column;
  column.source = source;
  column.position = position;
  column.name = names.add(field.name, position);
  column.arrow_type = type_text(field);
  return column;
}

}  // namespace

const Table& table_of(const Pack& pack, PackColumn::Source source) {
  return source == PackColumn::Source::index ? *pack.index() : *pack.slides();
}

std::vector<PackColumn> index_columns(const Pack& pack, bool layout) {
  std::vector<PackColumn> columns;
  UniqueNames names;
  names.add(record_name, 0);
  const Table& index = *pack.index();
  for (size_t i = 0; i < index.num_columns(); ++i) {
    if (!layout && is_layout_column(pack, index.field(i).name)) continue;
    columns.push_back(table_column(PackColumn::Source::index, index, i, names));
  }
  const Table& slides = *pack.slides();
  const auto key = find_slide_key(pack);
  if (key.has_value() || slides.num_rows() == 1) {
    for (size_t i = 0; i < slides.num_columns(); ++i) {
      if (key.has_value() && i == key->slide_column) continue;
      columns.push_back(table_column(PackColumn::Source::slides, slides, i, names));
    }
  }
  if (layout && find_places(pack)) {
    for (size_t i = 0; i < place_names().size(); ++i) {
      PackColumn& column = columns.emplace_back();
      column.source = PackColumn::Source::place;
      column.position = i;
      column.name = names.add(place_names()[i], i);
      column.arrow_type = type_text(*place_field(i).get());
    }
  }
  if (dicom::is_dicom(pack) && !has_column(columns, patient_id_name)) {
    PackColumn column;
    column.source = PackColumn::Source::patient_id;
    column.name = patient_id_name;
    column.arrow_type = type_text(*text_field().get());
    columns.push_back(std::move(column));
  }
  return columns;
}

std::vector<PackColumn> slide_columns(const Pack& pack) {
  std::vector<PackColumn> columns;
  UniqueNames names;
  for (size_t i = 0; i < pack.slides()->num_columns(); ++i) {
    columns.push_back(table_column(PackColumn::Source::slides, *pack.slides(), i, names));
  }
  return columns;
}

// A column of a type that DuckDB lacks is listed, so that its neighbours can be read.
void add_types(const Pack& pack, std::vector<PackColumn>& columns) {
  const nanoarrow::UniqueSchema text = text_field();
  for (PackColumn& column : columns) {
    const bool is_place = column.source == PackColumn::Source::place;
    nanoarrow::UniqueSchema place;
    if (is_place) place = place_field(column.position);
    const ArrowSchema& field = is_place ? *place.get()
                               : column.source == PackColumn::Source::patient_id
                                   ? *text.get()
                                   : table_of(pack, column.source).field(column.position);
    try {
      column.type = value_type(field);
    } catch (const Error& error) {
      column.problem = error.reason();
      column.type.logical = logical_type(DUCKDB_TYPE_VARCHAR);
      continue;
    }
    if (ArrowArrayViewInitFromSchema(column.no_rows.get(), &field, nullptr) != NANOARROW_OK) {
      throw std::bad_alloc();
    }
  }
}

std::string signature(const std::vector<PackColumn>& columns) {
  std::string text;
  for (const PackColumn& column : columns) {
    text += static_cast<char>('0' + static_cast<int>(column.source));
    for (const std::string& part :
         {std::to_string(column.position), column.name, column.arrow_type}) {
      text += part + '\0';
    }
  }
  return text;
}

void rethrow_in(const Error& error, const std::string& column, const std::string& path) {
  throw Error(error.kind(), "column '" + column + "': " + error.reason(), error.code())
      .at(error.row())
      .in(path);
}

Columns read_columns(const Table& table, size_t batch, const std::vector<size_t>& wanted) {
  Columns columns(table.num_columns());
  auto read = table.columns(wanted, batch);
  for (size_t i = 0; i < wanted.size(); ++i) columns[wanted[i]] = std::move(read[i]);
  return columns;
}

}  // namespace iac::duckdb
