// Scalar functions that turn record references into what is stored: those of one vector are
// fetched in one batch a pack.
#pragma once

#include <iac/pack.h>

#include <cstdint>
#include <span>

#include "handles.h"
#include "settings.h"

namespace iac::duckdb {

// The records of one pack that a vector refers to. Their stamps agree with the pack.
class Records {
 public:
  // `budget` is what the vector's payloads may still take, and shrinks.
  Records(const char* function, const Pack& pack, std::span<const int64_t> rows,
          std::span<const idx_t> slots, const ReadSettings& settings, uint64_t& budget)
      : pack(pack),
        rows(rows),
        slots(slots),
        settings(settings),
        function_(function),
        budget_(budget) {}

  const Pack& pack;
  const std::span<const int64_t> rows;  // of the pack
  const std::span<const idx_t> slots;   // where each goes in the vector
  const ReadSettings& settings;

  // All of them, decoded or as they are stored. Throws Error, naming the first that fails.
  Batch read(bool decode) const;
  // Decoded, of documents their text region alone.
  Batch read_text() const;
  // Decoded, but what is no image of a whole slide, which is empty.
  Batch read_images() const;

  // Counts bytes of the result. Throws Error when the vector takes more than it may.
  void count(uint64_t bytes) const;

 private:
  Batch read(ReadOptions options) const;
  [[noreturn]] void refuse() const;

  const char* function_;
  uint64_t& budget_;
};

struct Resolver {
  const char* name;  // of the SQL function
  LogicalType (*result)();
  // Writes what the records are to their slots. Throws Error(...).at(row) for one that the result
  // cannot be; the pack is named by the caller.
  void (*write)(const Records& records, duckdb_vector out);
};

// Registers `name(record)`. The resolver must live as long as the extension.
void register_resolver(duckdb_connection connection, const Resolver& resolver);

// Writes the bytes of each record to its slot of a BLOB or VARCHAR vector.
void write_bytes(const Records& records, const Batch& batch, duckdb_vector out);

}  // namespace iac::duckdb
