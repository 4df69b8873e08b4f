// One column of one record batch of an Arrow IPC stream, read into owned memory and checked to
// the last offset, so that whoever uses it needs no checks of his own.
#pragma once

#include <functional>
#include <memory>
#include <nanoarrow/nanoarrow.hpp>
#include <vector>

#include "iac/arrow_schema.h"
#include "iac/buffers.h"
#include "iac/source.h"

namespace iac {

class Column;

inline bool is_view_type(ArrowType type) {
  return type == NANOARROW_TYPE_STRING_VIEW || type == NANOARROW_TYPE_BINARY_VIEW;
}

// Where the body of a record batch (or of a dictionary's) lies and how it is laid out.
struct BatchLocation {
  const void* record_batch = nullptr;  // org.apache.arrow.flatbuf.RecordBatch, verified
  uint64_t body_offset = 0;            // in the source
  uint64_t body_length = 0;
  bool version4 = false;  // unions had a validity buffer before metadata version 5
};

// How far the flat lists of a record batch are walked: the place of a column's first entries.
struct BatchCursor {
  size_t node = 0;
  size_t buffer = 0;
  size_t variadic = 0;

  // The place of the field behind `field`, whose own entries start here.
  BatchCursor behind(const ArrowSchema& field, const BatchLocation& batch) const;
};

// The current value of a dictionary.
using DictionaryLookup = std::function<std::shared_ptr<const Column>(int64_t id)>;

class Column {
 public:
  // Reads, decompresses and validates. Throws Error naming the column.
  static std::shared_ptr<const Column> read(const Source& source, const BatchLocation& batch,
                                            BatchCursor at, const ArrowSchema& field,
                                            const TableSchema& schema,
                                            const DictionaryLookup& dictionaries);

  const ArrowArrayView& view() const { return *view_.get(); }
  int64_t length() const { return view_.get()->length; }
  uint64_t bytes() const { return bytes_; }  // memory held

 private:
  friend class ColumnReader;
  nanoarrow::UniqueArrayView view_;
  std::vector<Buffer> buffers_;
  std::vector<std::unique_ptr<const void*[]>> variadic_pointers_;
  std::vector<std::unique_ptr<int64_t[]>> variadic_sizes_;
  std::vector<std::shared_ptr<const Column>> dictionaries_;
  uint64_t bytes_ = 0;
};

// The column as an ArrowArray of the C data interface that keeps it alive.
void export_column(std::shared_ptr<const Column> column, ArrowArray* out);

// Adds where the buffers of a field lie in the source.
void locate_buffers(const BatchLocation& batch, BatchCursor at, const ArrowSchema& field,
                    std::vector<Segment>& out);

// Where the values of a plain fixed-width column lie in the source, so that a range of rows can be
// read without the rest: offset 0 when they do not lie there plainly (compressed, say).
struct PlainValues {
  uint64_t offset = 0;
  int64_t null_count = 0;
};
PlainValues locate_plain_values(const BatchLocation& batch, BatchCursor at, int64_t rows,
                                size_t width);

}  // namespace iac
