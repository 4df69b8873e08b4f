// The slide of each index row: by the column slide_idx, else series_idx, that both tables have. A
// slide table of one row is the slide of every index row when there is no such column.
#pragma once

#include <iac/pack.h>

#include <optional>
#include <unordered_map>

namespace iac::duckdb {

struct SlideKey {
  size_t index_column;
  size_t slide_column;
};

// Throws Error when a table has the column twice.
std::optional<SlideKey> find_slide_key(const Pack& pack);

class SlideLookup {
 public:
  using Key = __int128;  // any integer of 64 bits, signed or not

  // Reads the slide table's keys. Throws Error when they are not integers or not unique.
  SlideLookup(const Pack& pack, std::optional<SlideKey> key);

  // The slide rows of the index rows first, first + 1 ... of one batch; -1: there is no such
  // slide. `keys` is the index's key column, needed when there is one.
  void find(const Column* keys, int64_t first, std::span<int64_t> rows) const;

 private:
  struct Hash {
    size_t operator()(Key key) const { return std::hash<uint64_t>{}(static_cast<uint64_t>(key)); }
  };

  bool is_broadcast_;
  std::unordered_map<Key, int64_t, Hash> rows_;
};

}  // namespace iac::duckdb
