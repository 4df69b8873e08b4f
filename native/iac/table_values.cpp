#include "iac/table_values.h"

#include <string>

#include "iac/error.h"

namespace iac {

TableValues::TableValues(const Table& table, size_t column, std::span<const int64_t> rows)
    : table_(table), name_(table.field(column).name) {
  size_t last = SIZE_MAX;
  for (const int64_t row : rows) {
    const size_t batch = table.locate(row).first;
    if (batch == last) continue;
    last = batch;
    if (!batches_.contains(batch)) batches_.emplace(batch, table.column(column, batch));
  }
}

std::optional<TableValues> TableValues::find(const Table& table, const char* name,
                                             std::span<const int64_t> rows) {
  const auto column = table.find(name);
  if (!column) return std::nullopt;
  return TableValues(table, *column, rows);
}

std::optional<TableValues::Place> TableValues::place(int64_t row) const {
  const auto [batch, at] = table_.locate(row);
  Place place{&batches_.at(batch)->view(), at};
  while (!ArrowArrayViewIsNull(place.view, place.row)) {
    if (place.view->dictionary == nullptr) return place;
    place = {place.view->dictionary, ArrowArrayViewGetIntUnsafe(place.view, place.row)};
  }
  return std::nullopt;
}

void TableValues::wrong_type(ArrowType type, const char* expected) const {
  throw Error(Error::Kind::pack, "column '" + std::string(name_) + "' has type " +
                                     ArrowTypeString(type) + ", expected " + expected);
}

std::optional<int64_t> TableValues::integer(int64_t row) const {
  const auto found = place(row);
  if (!found) return std::nullopt;
  const ArrowType type = found->view->storage_type;
  if (type < NANOARROW_TYPE_UINT8 || type > NANOARROW_TYPE_INT64) wrong_type(type, "integers");
  return ArrowArrayViewGetIntUnsafe(found->view, found->row);
}

std::optional<bool> TableValues::boolean(int64_t row) const {
  const auto found = place(row);
  if (!found) return std::nullopt;
  const ArrowType type = found->view->storage_type;
  if (type != NANOARROW_TYPE_BOOL) wrong_type(type, "bool");
  return ArrowArrayViewGetIntUnsafe(found->view, found->row) != 0;
}

std::optional<std::string_view> TableValues::bytes(int64_t row) const {
  const auto found = place(row);
  if (!found) return std::nullopt;
  switch (found->view->storage_type) {
    case NANOARROW_TYPE_STRING:
    case NANOARROW_TYPE_LARGE_STRING:
    case NANOARROW_TYPE_STRING_VIEW:
    case NANOARROW_TYPE_BINARY:
    case NANOARROW_TYPE_LARGE_BINARY:
    case NANOARROW_TYPE_BINARY_VIEW:
      break;
    default:
      wrong_type(found->view->storage_type, "binary");
  }
  const ArrowBufferView value = ArrowArrayViewGetBytesUnsafe(found->view, found->row);
  return std::string_view(value.data.as_char, static_cast<size_t>(value.size_bytes));
}

}  // namespace iac
