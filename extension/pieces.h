// Records taken so many at a time that their stored bytes need little memory.
#pragma once

#include <iac/pack.h>

#include <cstdint>
#include <span>

namespace iac::duckdb {

constexpr uint64_t piece_bytes = uint64_t{32} << 20;

// The first of the rows: as many as have up to `most` bytes, but at least `least`. They must be
// rows of the pack.
std::span<const int64_t> next_piece(const Pack& pack, std::span<const int64_t> rows,
                                    uint64_t most = piece_bytes, size_t least = 1);

}  // namespace iac::duckdb
