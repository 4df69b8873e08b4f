// Scalar functions that turn record references into what is stored: those of one vector are
// fetched in one batch a pack.
#pragma once

#include <iac/pack.h>

#include <cstdint>
#include <span>

#include "handles.h"

namespace iac::duckdb {

// Writes the bytes of record i to slots[i] of a BLOB or VARCHAR vector.
void write_bytes(const Batch& batch, std::span<const int64_t> rows, std::span<const idx_t> slots,
                 duckdb_vector out);

struct Resolver {
  const char* name;  // of the SQL function
  LogicalType (*result)();
  bool decode = true;  // false: the stored bytes
  // Writes record i, which is rows[i] of its pack, to slots[i]. Throws Error(...).at(row) for one
  // that the result cannot be.
  decltype(write_bytes)* write = write_bytes;
};

// Registers `name(record)`. The resolver must live as long as the extension.
void register_resolver(duckdb_connection connection, const Resolver& resolver);

}  // namespace iac::duckdb
