#include "iac/writer.h"

#include <string>

#include "iac/checksum.h"
#include "iac/error.h"

namespace iac {

// Small payloads are collected to so much before they are written; of many that lie together so
// much is written at a time, while the caches have what the crc32 was computed of.
static constexpr size_t pending_bytes = size_t{256} << 10;

Writer::Writer(std::unique_ptr<OutputFile> file, std::string header_json, const Segments& segments)
    : file_(std::move(file)),
      header_json_(std::move(header_json)),
      segments_(segments),
      data_offset_(header_bytes + segments.slide_table_length + segments.index_table_length) {
  // Better now than after the data: the longest that the header can become.
  Segments longest = segments_;
  longest.data_length = UINT64_MAX - data_offset_;
  encode_header(header_json_, longest);
}

void Writer::add(Bytes payload, uint64_t place) {
  if (offsets_.size() == segments_.num_records) {
    throw Error(Error::Kind::argument, "more payloads than the " +
                                           std::to_string(segments_.num_records) +
                                           " rows of the index table")
        .in(file_->path());
  }
  if (payload.size() > UINT32_MAX) {
    throw Error(Error::Kind::argument, "payload of " + std::to_string(payload.size()) +
                                           " bytes is too large, a record has at most 4 GiB - 1")
        .in(file_->path())
        .at(static_cast<int64_t>(offsets_.size()));
  }
  offsets_.push_back(place);
  lengths_.push_back(static_cast<uint32_t>(payload.size()));
  crc32s_.push_back(crc32(payload));
}

void Writer::append(Bytes payload) {
  add(payload, data_length_);
  write(payload);
}

void Writer::append_all(Bytes data, std::span<const uint64_t> offsets) {
  if (offsets.empty()) return;
  uint64_t first = offsets.front();  // of what is not written yet
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const uint64_t begin = offsets[i], end = offsets[i + 1];
    if (begin > end || end > data.size()) {
      throw Error(Error::Kind::argument, "offsets of records are not inside their data");
    }
    add(data.subspan(begin, end - begin), data_length_ + (begin - first));
    if (end - first >= pending_bytes || i + 2 == offsets.size()) {
      write(data.subspan(first, end - first));
      first = end;
    }
  }
}

void Writer::append_data(Bytes data) { write(data); }

void Writer::write(Bytes data) {
  if (pending_.size() + data.size() > pending_bytes) flush();
  if (data.size() >= pending_bytes) {
    file_->write_at(data_offset_ + data_length_, data);
  } else {
    pending_.insert(pending_.end(), data.begin(), data.end());
  }
  data_length_ += data.size();
}

void Writer::flush() {
  file_->write_at(data_offset_ + data_length_ - pending_.size(), pending_);
  pending_.clear();
}

void Writer::finish(Bytes slide_table, Bytes index_table) {
  const bool as_announced = slide_table.size() == segments_.slide_table_length &&
                            index_table.size() == segments_.index_table_length;
  if (!as_announced) {
    throw Error(Error::Kind::argument, "tables differ in length from what was announced")
        .in(file_->path());
  }
  flush();
  segments_.data_length = data_length_;
  const std::string header = encode_header(header_json_, segments_);
  file_->write_at(0, as_bytes(header.data(), header.size()));
  file_->write_at(header_bytes, slide_table);
  file_->write_at(header_bytes + slide_table.size(), index_table);
  file_->publish();
}

}  // namespace iac
