#include "columns.h"

#include <iac/error.h>
#include <iac/workers.h>

#include <algorithm>
#include <string_view>

#include "record.h"

namespace iac::duckdb {
namespace {

constexpr const char* record_name = "record";
constexpr std::string_view layout_names[] = {"offset", "length", "crc32"};

bool is_layout_column(const Pack& pack, std::string_view name) {
  return pack.layout().kind() == Layout::Kind::variable &&
         std::find(std::begin(layout_names), std::end(layout_names), name) !=
             std::end(layout_names);
}

// A column of a type that DuckDB lacks is listed, so that its neighbours can be read.
ScanColumn table_column(ScanColumn::Source source, const Table& table, size_t position,
                        UniqueNames& names) {
  const ArrowSchema& field = table.field(position);
  ScanColumn column;
  column.source = source;
  column.position = position;
  column.name = names.add(field.name, position);
  column.arrow_type = type_text(field);
  try {
    column.type = value_type(field);
  } catch (const Error& error) {
    column.problem = error.reason();
    column.type.logical = logical_type(DUCKDB_TYPE_VARCHAR);
  }
  return column;
}

}  // namespace

std::vector<ScanColumn> scan_columns(const Pack& pack, bool layout) {
  std::vector<ScanColumn> columns;
  UniqueNames names;
  names.add(record_name, 0);  // the reference keeps its name whatever the tables hold
  const Table& index = *pack.index();
  for (size_t i = 0; i < index.num_columns(); ++i) {
    if (!layout && is_layout_column(pack, index.field(i).name)) continue;
    columns.push_back(table_column(ScanColumn::Source::index, index, i, names));
  }
  const Table& slides = *pack.slides();
  const auto key = find_slide_key(pack);
  if (key.has_value() || slides.num_rows() == 1) {
    for (size_t i = 0; i < slides.num_columns(); ++i) {
      if (key.has_value() && i == key->slide_column) continue;
      columns.push_back(table_column(ScanColumn::Source::slides, slides, i, names));
    }
  }
  ScanColumn record;
  record.source = ScanColumn::Source::record;
  record.name = record_name;
  record.type.logical = record_type();
  columns.push_back(std::move(record));
  return columns;
}

std::vector<ScanColumn> slide_columns(const Pack& pack) {
  std::vector<ScanColumn> columns;
  UniqueNames names;
  for (size_t i = 0; i < pack.slides()->num_columns(); ++i) {
    columns.push_back(table_column(ScanColumn::Source::slides, *pack.slides(), i, names));
  }
  return columns;
}

bool same_columns(const std::vector<ScanColumn>& a, const std::vector<ScanColumn>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.source == y.source && x.position == y.position && x.name == y.name &&
           x.arrow_type == y.arrow_type;
  });
}

void require_readable(const ScanColumn& column, const std::string& path) {
  if (column.problem.empty()) return;
  rethrow_in(Error(Error::Kind::argument, column.problem), column, path);
}

void rethrow_in(const Error& error, const ScanColumn& column, const std::string& path) {
  throw Error(error.kind(), "column '" + column.name + "': " + error.reason(), error.code())
      .in(path);
}

Columns read_columns(const Table& table, size_t batch, const std::vector<size_t>& wanted) {
  Columns columns(table.num_columns());
  parallel_for(wanted.size(), worker_count(0, wanted.size()),
               [&](size_t i) { columns[wanted[i]] = table.column(wanted[i], batch); });
  return columns;
}

}  // namespace iac::duckdb
