// NULLs in vectors of any type.
#pragma once

#include <span>

#include "handles.h"

namespace iac::duckdb {

// Makes the slots of a vector NULL, whatever they hold.
void set_nulls(std::span<const idx_t> slots, duckdb_vector out);

}  // namespace iac::duckdb
