#include "copy_table.h"

#include <iac/error.h>

#include <nanoarrow/nanoarrow_ipc.hpp>

namespace iac::duckdb {
namespace {

// A record batch ends behind the chunk that brings it to so many rows or bytes: well below what the
// 32-bit offsets of its texts and lists can say.
constexpr int64_t max_batch_rows = int64_t{1} << 20;
constexpr int64_t max_batch_bytes = int64_t{256} << 20;

int64_t bytes_of(ArrowArray& array) {
  int64_t bytes = ArrowArrayValidityBitmap(&array)->buffer.size_bytes;
  for (int64_t i = 0; i < array.n_buffers; ++i) bytes += ArrowArrayBuffer(&array, i)->size_bytes;
  for (int64_t i = 0; i < array.n_children; ++i) bytes += bytes_of(*array.children[i]);
  return bytes;
}

void checked(ArrowErrorCode code, const ArrowError& error) {
  if (code == ENOMEM) throw std::bad_alloc();
  if (code != NANOARROW_OK) throw Error(Error::Kind::argument, error.message);
}

nanoarrow::UniqueArray plain_array(const PlainColumn& column, int64_t first, int64_t rows) {
  nanoarrow::UniqueArray array;
  require(ArrowArrayInitFromType(array.get(), column.type));
  require(ArrowArrayStartAppending(array.get()));
  const auto* values = static_cast<const std::byte*>(column.values);
  const auto width = static_cast<int64_t>(column.width);
  require(
      ArrowBufferAppend(ArrowArrayBuffer(array.get(), 1), values + first * width, rows * width));
  array->length = rows;
  return array;
}

nanoarrow::UniqueSchema table_schema(std::span<const PlainColumn> before,
                                     const std::vector<StoredColumn>& columns,
                                     std::span<const PlainColumn> behind) {
  nanoarrow::UniqueSchema schema;
  ArrowSchemaInit(schema.get());
  require(ArrowSchemaSetTypeStruct(
      schema.get(), static_cast<int64_t>(before.size() + columns.size() + behind.size())));
  ArrowSchema** next = schema->children;
  const auto add = [&](const PlainColumn& column) {
    require(ArrowSchemaSetType(*next, column.type));
    require(ArrowSchemaSetName(*next++, column.name));
  };
  for (const PlainColumn& column : before) add(column);
  for (const StoredColumn& column : columns) {
    ArrowSchemaRelease(*next);
    require(ArrowSchemaDeepCopy(column.field.get(), *next++));
  }
  for (const PlainColumn& column : behind) add(column);
  return schema;
}

// The stream of record batches as it is written.
class Stream {
 public:
  explicit Stream(nanoarrow::UniqueSchema schema) : schema_(std::move(schema)) {
    ArrowIpcOutputStream output;
    require(ArrowIpcOutputStreamInitBuffer(&output, bytes_.get()));
    require(ArrowIpcWriterInit(writer_.get(), &output));
    ArrowError error;
    checked(ArrowIpcWriterWriteSchema(writer_.get(), schema_.get(), &error), error);
  }

  void write(std::vector<nanoarrow::UniqueArray> columns, int64_t rows) {
    nanoarrow::UniqueArray array;
    require(ArrowArrayInitFromType(array.get(), NANOARROW_TYPE_STRUCT));
    require(ArrowArrayAllocateChildren(array.get(), static_cast<int64_t>(columns.size())));
    for (size_t i = 0; i < columns.size(); ++i) {
      ArrowArrayMove(columns[i].get(), array->children[i]);
    }
    array->length = rows;
    array->null_count = 0;
    ArrowError error;
    checked(ArrowArrayFinishBuildingDefault(array.get(), &error), error);
    nanoarrow::UniqueArrayView view;
    checked(ArrowArrayViewInitFromSchema(view.get(), schema_.get(), &error), error);
    checked(ArrowArrayViewSetArray(view.get(), array.get(), &error), error);
    checked(ArrowIpcWriterWriteArrayView(writer_.get(), view.get(), &error), error);
  }

  nanoarrow::UniqueBuffer finish() {
    ArrowError error;
    checked(ArrowIpcWriterWriteArrayView(writer_.get(), nullptr, &error), error);
    return std::move(bytes_);
  }

 private:
  nanoarrow::UniqueSchema schema_;
  nanoarrow::UniqueBuffer bytes_;
  nanoarrow::ipc::UniqueWriter writer_;
};

}  // namespace

TableBuilder::TableBuilder(const std::vector<StoredColumn>& columns) : columns_(columns) {}

void TableBuilder::start_batch() {
  Batch& batch = batches_.emplace_back();
  for (const StoredColumn& column : columns_) {
    ArrowError error;
    batch.columns.emplace_back();
    ArrowArray* array = batch.columns.back().get();
    checked(ArrowArrayInitFromSchema(array, column.field.get(), &error), error);
    require(ArrowArrayStartAppending(array));
  }
}

int64_t TableBuilder::batch_bytes() {
  int64_t bytes = 0;
  for (auto& column : batches_.back().columns) bytes += bytes_of(*column.get());
  return bytes;
}

void TableBuilder::append(const CopyPlan& plan, duckdb_data_chunk chunk, const Rows& rows) {
  if (rows.count() == 0) return;
  const bool full = !batches_.empty() &&
                    (batches_.back().rows >= max_batch_rows || batch_bytes() >= max_batch_bytes);
  if (batches_.empty() || full) start_batch();
  Batch& batch = batches_.back();
  for (size_t i = 0; i < columns_.size(); ++i) {
    const StoredColumn& column = columns_[i];
    try {
      column.type.append(column.type, plan.column(chunk, column.position), rows,
                         *batch.columns[i].get());
    } catch (const Error& error) {
      throw Error(error.kind(), "column '" + column.name + "': " + error.reason());
    }
  }
  batch.rows += static_cast<int64_t>(rows.count());
  num_rows_ += static_cast<int64_t>(rows.count());
}

nanoarrow::UniqueBuffer TableBuilder::finish(std::span<const PlainColumn> before,
                                             std::span<const PlainColumn> behind) {
  Stream stream(table_schema(before, columns_, behind));
  int64_t first = 0;
  for (Batch& batch : batches_) {
    std::vector<nanoarrow::UniqueArray> columns;
    for (const auto& column : before) columns.push_back(plain_array(column, first, batch.rows));
    for (auto& column : batch.columns) columns.push_back(std::move(column));
    for (const auto& column : behind) columns.push_back(plain_array(column, first, batch.rows));
    stream.write(std::move(columns), batch.rows);
    first += batch.rows;
  }
  return stream.finish();
}

}  // namespace iac::duckdb
