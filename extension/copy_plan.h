// What the columns of a COPY become: the payload or the record that is stored, the slide table, the
// index table.
#pragma once

#include <iac/codec/codec.h>

#include <array>
#include <memory>

#include "copy_options.h"
#include "copy_types.h"
#include "record.h"

namespace iac::duckdb {

struct StoredColumn {
  std::string name;
  idx_t position = 0;  // among the columns of the query
  StoredType type;
  nanoarrow::UniqueSchema field;
};

// Where the parts of an image are in its struct.
struct ImageFields {
  enum Part { height, width, channels, dtype, data };
  struct Field {
    idx_t position = 0;
    duckdb_type type = DUCKDB_TYPE_INVALID;
    std::vector<std::string> texts;  // of an ENUM
  };
  std::array<Field, 5> parts;
};

struct CopyPlan {
  ClientContext context;
  idx_t width = 0;          // columns of the query
  bool one_struct = false;  // the columns are the fields of its only one
  std::string payload_type;

  idx_t payload = 0;                         // the column `payload` or `record`
  std::optional<ReferenceReader> reference;  // of `record`
  std::optional<ImageFields> image;          // of a `payload` for an image codec
  std::shared_ptr<const Codec> codec;        // of a `record`: the one asked for, if any

  std::vector<StoredColumn> index, slides;
  std::optional<size_t> key;    // the column of `index`, and of `slides`, that numbers the slides
  bool numbers_slides = false;  // no such column: they are numbered as they come

  // Throws Error.
  CopyPlan(std::vector<LogicalType> types, const CopyOptions& options);

  duckdb_vector column(duckdb_data_chunk chunk, idx_t position) const {
    const duckdb_vector first = duckdb_data_chunk_get_vector(chunk, one_struct ? 0 : position);
    return one_struct ? duckdb_struct_vector_get_child(first, position) : first;
  }
};

}  // namespace iac::duckdb
