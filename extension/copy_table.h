// A table of a pack, made from vectors: kept as Arrow arrays, then written as an Arrow IPC stream.
#pragma once

#include <iac/bytes.h>

#include <span>

#include "copy_plan.h"

namespace iac::duckdb {

// A column of the whole table that is no column of the query: its values, one behind the other.
struct PlainColumn {
  const char* name;
  ArrowType type;
  size_t width;
  const void* values;
};

class TableBuilder {
 public:
  // The columns must live as long as this.
  explicit TableBuilder(const std::vector<StoredColumn>& columns);

  int64_t num_rows() const { return num_rows_; }

  // Adds rows of a chunk, which must not be more than one vector has. Throws Error naming the
  // column.
  void append(const CopyPlan& plan, duckdb_data_chunk chunk, const Rows& rows);

  // The stream, with columns before and behind the others. Nothing may be added afterwards.
  nanoarrow::UniqueBuffer finish(std::span<const PlainColumn> before,
                                 std::span<const PlainColumn> behind);

 private:
  struct Batch {
    int64_t rows = 0;
    std::vector<nanoarrow::UniqueArray> columns;
  };

  void start_batch();
  int64_t batch_bytes();

  const std::vector<StoredColumn>& columns_;
  std::vector<Batch> batches_;  // the last one is growing
  int64_t num_rows_ = 0;
};

}  // namespace iac::duckdb
