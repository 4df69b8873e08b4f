// Scalar functions that turn record references into what is stored: those of one vector are
// fetched in one batch a pack.
#pragma once

#include <iac/pack.h>

#include <cstdint>
#include <span>

#include "handles.h"

namespace iac::duckdb {

struct Resolver {
  const char* name;  // of the SQL function
  duckdb_type result;
  bool decode = true;  // false: the stored bytes
  // Checks what was read before it is given out; throws Error(...).at(row). May be nullptr.
  void (*check)(const Batch& batch, std::span<const int64_t> rows) = nullptr;
};

// Registers `name(record)`. The resolver must live as long as the extension.
void register_resolver(duckdb_connection connection, const Resolver& resolver);

}  // namespace iac::duckdb
