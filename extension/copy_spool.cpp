#include "copy_spool.h"

#include <fcntl.h>
#include <iac/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace iac::duckdb {

// Bytes copied at a time.
static constexpr size_t copy_bytes = size_t{4} << 20;

RecordSpool::RecordSpool(const std::string& path) : path_(path) {
  std::string name = (std::filesystem::path(path).parent_path() / ".iac-copy.XXXXXX").string();
  descriptor_ = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ < 0) throw system_error(errno, "cannot create a file beside it").in(path_);
  ::unlink(name.c_str());
}

RecordSpool::~RecordSpool() { ::close(descriptor_); }

void RecordSpool::append(Bytes records, std::span<const uint32_t> lengths,
                         std::span<const uint32_t> crc32s) {
  uint64_t offset = size_;
  for (const uint32_t length : lengths) {
    offsets_.push_back(offset);
    offset += length;
  }
  lengths_.insert(lengths_.end(), lengths.begin(), lengths.end());
  crc32s_.insert(crc32s_.end(), crc32s.begin(), crc32s.end());
  while (!records.empty()) {
    const ssize_t written =
        pwrite(descriptor_, records.data(), records.size(), static_cast<off_t>(size_));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw system_error(written < 0 ? errno : EIO, "cannot write").in(path_);
    size_ += static_cast<uint64_t>(written);
    records = records.subspan(static_cast<size_t>(written));
  }
}

void RecordSpool::copy_to(Writer& writer) const {
  std::vector<std::byte> block(static_cast<size_t>(std::min<uint64_t>(copy_bytes, size_)));
  for (uint64_t at = 0; at < size_;) {
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(block.size(), size_ - at));
    const ssize_t read = pread(descriptor_, block.data(), wanted, static_cast<off_t>(at));
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) throw system_error(read < 0 ? errno : EIO, "cannot read records back").in(path_);
    writer.append_data(as_bytes(block.data(), static_cast<size_t>(read)));
    at += static_cast<uint64_t>(read);
  }
}

uint32_t stored_length(size_t bytes) {
  if (bytes <= UINT32_MAX) return static_cast<uint32_t>(bytes);
  throw Error(Error::Kind::argument, "its " + std::to_string(bytes) +
                                         " stored bytes are too many, a record has at most 4 GiB "
                                         "- 1");
}

}  // namespace iac::duckdb
