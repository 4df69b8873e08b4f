// The stored records of a COPY on their way: the tables stand before them in a pack, and are not
// known before the last row. So they wait in a file without a name beside the pack.
#pragma once

#include <iac/writer.h>

#include <string>
#include <vector>

namespace iac::duckdb {

class RecordSpool {
 public:
  // Makes the file in the folder of `path`. Throws Error.
  explicit RecordSpool(const std::string& path);
  RecordSpool(const RecordSpool&) = delete;
  RecordSpool& operator=(const RecordSpool&) = delete;
  ~RecordSpool();

  // Adds stored records that lie one behind the other. Throws Error.
  void append(Bytes records, std::span<const uint32_t> lengths, std::span<const uint32_t> crc32s);

  size_t count() const { return lengths_.size(); }
  const std::vector<uint64_t>& offsets() const { return offsets_; }
  const std::vector<uint32_t>& lengths() const { return lengths_; }
  const std::vector<uint32_t>& crc32s() const { return crc32s_; }

  // Adds all records to a pack.
  void copy_to(Writer& writer) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
  std::vector<uint64_t> offsets_;
  std::vector<uint32_t> lengths_, crc32s_;
};

// What the layout can say of one record. Throws Error.
uint32_t stored_length(size_t bytes);

}  // namespace iac::duckdb
