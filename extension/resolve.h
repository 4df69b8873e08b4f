// Scalar functions that turn record references into what is stored: those of one vector are
// fetched in one batch a pack.
#pragma once

#include <iac/dicom/headers.h>
#include <iac/pack.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "handles.h"
#include "settings.h"

namespace iac::duckdb {

// Records of one pack that a vector refers to. Their stamps agree with the pack.
class Records {
 public:
  // `budget` is what their results may take, and shrinks.
  Records(const char* function, const Pack& pack, std::span<const int64_t> rows,
          std::span<const idx_t> slots, std::span<const std::string_view> texts,
          const ReadSettings& settings, uint64_t& budget)
      : pack(pack),
        rows(rows),
        slots(slots),
        texts(texts),
        settings(settings),
        function_(function),
        budget_(budget) {}

  const Pack& pack;
  const std::span<const int64_t> rows;  // of the pack
  const std::span<const idx_t> slots;   // where each goes in the vector
  // What the function was called with beside the record, by slot; empty where it takes no more.
  const std::span<const std::string_view> texts;
  const ReadSettings& settings;

  // All of them, decoded or as they are stored. Throws Error, naming the first that fails.
  Batch read(bool decode) const;
  // Decoded, of documents their text region alone.
  Batch read_text() const;
  // Decoded; a record that is to be an image and is none fails, see ReadOptions.
  Batch read_images() const;

  // Their DICOM headers. Throws Error as read() does, and for packs that have none.
  std::vector<dicom::RowHeader> read_headers() const;

  // Counts bytes of the result. Throws Error when the vector takes more than it may.
  void count(uint64_t bytes) const;

 private:
  ReadOptions options() const;
  Batch read(const ReadOptions& options) const;
  template <class Read>
  auto within_budget(Read read) const;
  [[noreturn]] void refuse() const;

  const char* function_;
  uint64_t& budget_;
};

struct Resolver {
  const char* name;  // of the SQL function
  LogicalType (*result)();
  // Writes what the records are to their slots. Throws Error(...).at(row) for one that the result
  // cannot be; the pack is named by the caller. Counts bytes before it adds to a list: fewer
  // records are tried again.
  void (*write)(const Records& records, duckdb_vector out);
  bool takes_text = false;
  // What is decoded is held twice while it is copied into the vector, so payloads come in pieces.
  bool reads_payloads = true;
};

// Registers `name(record)`, or `name(record, text)`; NULL where one of them is. The resolver must
// live as long as the extension.
void register_resolver(duckdb_connection connection, const Resolver& resolver);

// Writes the bytes of each record to its slot of a BLOB or VARCHAR vector.
void write_bytes(const Records& records, const Batch& batch, duckdb_vector out);

}  // namespace iac::duckdb
