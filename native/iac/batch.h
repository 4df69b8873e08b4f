// Many records in one piece: their bytes one behind the other, where each starts, and which of
// them could not be had.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "iac/buffers.h"
#include "iac/error.h"
#include "iac/image.h"

namespace iac {

// What a batch does with a record that cannot be read or decoded.
enum class OnError {
  raise,  // the batch fails with the first such record's error
  null,   // the record is missing from `validity`
  skip,   // the record is left out, `positions` says which are there
};

struct RowFailure {
  size_t position;  // in the request
  Error error;
};

struct Batch {
  size_t count = 0;
  Buffer data;
  Buffer offsets;                  // count + 1 uint64: record i is data[offsets[i], offsets[i + 1])
  std::vector<ImageShape> images;  // decoded by image codecs: of each record; else empty
  std::vector<uint8_t> validity;   // Arrow bitmap; empty when every record is there
  std::vector<int64_t> positions;  // OnError::skip only: the request's positions that are here
  std::vector<RowFailure> failures;  // by position
  size_t unchecked = 0;              // records that have no crc32 to verify
};

// Failures as they come in from any thread.
class Failures {
 public:
  // Of payloads of no pack, whose errors name their position as row.
  explicit Failures(size_t count) : failed_(count, 0) {}
  // Of rows of a pack, whose errors are to name both.
  Failures(std::string pack, std::span<const int64_t> rows)
      : failed_(rows.size(), 0), pack_(std::move(pack)), rows_(rows) {}

  void add(size_t position, Error error) {
    const std::lock_guard lock(mutex_);
    failed_[position] = 1;
    const int64_t row = rows_.empty() ? static_cast<int64_t>(position) : rows_[position];
    list_.push_back({position, std::move(error).in(pack_).at(row)});
  }
  // Of a position whose work is done by the calling thread, or was done before.
  bool at(size_t position) const { return failed_[position] != 0; }

  // Whether there are any; asked when no thread adds more.
  bool any() const { return !list_.empty(); }

  // Whether there are any, so far, of lower positions; any thread may ask.
  bool any_before(size_t position) const;

  // Makes the batch of what was read, under the rule for failures. Throws the first failure under
  // OnError::raise.
  Batch finish(OnError rule, Buffer data, std::span<const uint64_t> lengths,
               std::vector<ImageShape> images = {});

 private:
  mutable std::mutex mutex_;
  std::vector<char> failed_;
  std::vector<RowFailure> list_;
  std::string pack_;
  std::span<const int64_t> rows_;
};

// Shrinks records, `lengths` one behind the other, to the part of each that `part` gives. It may
// throw Error for one, which then has failed.
void keep_parts(MutableBytes data, std::span<uint64_t> lengths, Bytes (*part)(Bytes),
                Failures& failures);

}  // namespace iac
