// Records taken so many at a time that their stored bytes need little memory.
#pragma once

#include <iac/pack.h>

#include <span>

namespace iac::duckdb {

// The first of the rows, at least one. They must be rows of the pack.
std::span<const int64_t> next_slab(const Pack& pack, std::span<const int64_t> rows);

}  // namespace iac::duckdb
