// Writing a pack. The tables stand before the data but the index table holds where each record
// went, so room is left for it: its length does not depend on the values of those columns. Each
// payload goes to disk once, straight to its place.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "iac/header.h"
#include "iac/output_file.h"

namespace iac {

class Writer {
 public:
  // `segments` holds the lengths of both tables and the number of their rows. `header_json` is the
  // caller's own part of the header. Throws Error when the header does not fit.
  Writer(std::unique_ptr<OutputFile> file, std::string header_json, const Segments& segments);

  // Adds the next record. Throws Error when there are more than `segments.num_records`, or when
  // its length does not fit into the format's 32 bits.
  void append(Bytes payload);

  // Adds records that lie one behind the other: record i from offsets[i] to offsets[i + 1]. Throws
  // Error as append(), and for offsets that are not inside `data` or decrease.
  void append_all(Bytes data, std::span<const uint64_t> offsets);

  // Adds bytes to a data segment without records.
  void append_data(Bytes data);

  const std::vector<uint64_t>& offsets() const { return offsets_; }
  const std::vector<uint32_t>& lengths() const { return lengths_; }
  const std::vector<uint32_t>& crc32s() const { return crc32s_; }
  uint64_t data_length() const { return data_length_; }

  // Removes what was written. Only for a writer that is not used any more.
  void abandon() { file_.reset(); }

  // Writes tables and header and publishes the file. The tables must have the lengths given.
  void finish(Bytes slide_table, Bytes index_table);

 private:
  // Notes the next record, which write() puts at `place`.
  void add(Bytes payload, uint64_t place);
  void write(Bytes data);
  void flush();

  std::unique_ptr<OutputFile> file_;
  std::string header_json_;
  Segments segments_;
  uint64_t data_offset_;
  uint64_t data_length_ = 0;
  std::vector<std::byte> pending_;  // the end of the data, not yet written
  std::vector<uint64_t> offsets_;
  std::vector<uint32_t> lengths_, crc32s_;
};

}  // namespace iac
