// The column `payload` of a COPY: encoded in parallel, many at a time.
#pragma once

#include "copy_plan.h"
#include "copy_spool.h"

namespace iac::duckdb {

class PayloadEncoder {
 public:
  PayloadEncoder(const CopyPlan& plan, unsigned threads, RecordSpool& spool)
      : plan_(plan), threads_(threads), spool_(spool) {}

  // Adds the payloads of a chunk. Throws Error naming the row.
  void add(duckdb_data_chunk chunk, size_t count);

  // Encodes what waits.
  void flush();

 private:
  struct Object {
    Bytes bytes;
    ImageShape shape;
    std::vector<std::byte> kept;  // the bytes, where they are no more those of a vector
  };
  // Neighbouring objects that one thread encodes.
  struct Piece {
    size_t first = 0, count = 0;
    std::vector<std::byte> out;
    std::vector<uint32_t> lengths, crc32s;
  };

  int64_t next_row() const { return static_cast<int64_t>(spool_.count() + objects_.size()); }
  void push(Object object);
  void keep();
  void encode(Piece& piece) const;

  const CopyPlan& plan_;
  unsigned threads_;
  RecordSpool& spool_;
  std::vector<Object> objects_;
  size_t bytes_ = 0;  // of objects_
  std::vector<Piece> pieces_;
};

}  // namespace iac::duckdb
