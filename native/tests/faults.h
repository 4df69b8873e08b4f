// Files that fail on purpose.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "iac/output_file.h"
#include "iac/source.h"

namespace iac::tests {

// Bytes in memory, read as from a file.
class MemorySource : public Source {
 public:
  explicit MemorySource(std::string bytes)
      : Source(bytes.size(), "memory"), bytes_(std::move(bytes)) {}

 protected:
  int64_t read_some(uint64_t offset, std::span<const MutableBytes> pieces) const override {
    int64_t total = 0;
    for (const MutableBytes piece : pieces) {
      if (offset >= bytes_.size()) break;
      const size_t count = std::min<size_t>(piece.size(), bytes_.size() - offset);
      if (count > 0) std::memcpy(piece.data(), bytes_.data() + offset, count);
      offset += count;
      total += static_cast<int64_t>(count);
      if (count < piece.size()) break;
    }
    return total;
  }

 private:
  std::string bytes_;
};

struct ReadFaults {
  size_t at_most = std::numeric_limits<size_t>::max();  // bytes a call gives
  bool interrupted = false;                             // every other call is
  uint64_t bad_from = 0, bad_to = 0;                    // reading any of these bytes is EIO
  uint64_t cut_at =
      std::numeric_limits<uint64_t>::max();  // the file ends here, whatever size() says
};

class FaultySource final : public MemorySource {
 public:
  FaultySource(std::string bytes, ReadFaults faults)
      : MemorySource(std::move(bytes)), faults(faults) {}

  ReadFaults faults;  // a test may change them between reads
  mutable std::atomic<uint64_t> calls{0};

 protected:
  int64_t read_some(uint64_t offset, std::span<const MutableBytes> pieces) const override {
    const uint64_t call = calls++;
    if (faults.interrupted && call % 2 == 0) return -EINTR;
    if (offset >= faults.cut_at) return 0;
    uint64_t room = std::min<uint64_t>(faults.at_most, faults.cut_at - offset);
    std::vector<MutableBytes> shorter;
    uint64_t end = offset;
    for (const MutableBytes piece : pieces) {
      if (room == 0) break;
      shorter.push_back(piece.first(std::min<uint64_t>(room, piece.size())));
      room -= shorter.back().size();
      end += shorter.back().size();
    }
    if (offset < faults.bad_to && end > faults.bad_from) return -EIO;
    return MemorySource::read_some(offset, shorter);
  }
};

struct WriteFaults {
  size_t at_most = std::numeric_limits<size_t>::max();         // bytes a call takes
  bool interrupted = false;                                    // every other call is
  uint64_t full_after = std::numeric_limits<uint64_t>::max();  // bytes until ENOSPC
  int sync_error = 0;
  std::function<void()> before_publish = {};  // runs when the file is synced
};

class FaultyFile final : public OutputFile {
 public:
  FaultyFile(const std::string& path, bool overwrite, WriteFaults faults)
      : OutputFile(path, overwrite), faults_(std::move(faults)) {}

 protected:
  int64_t write_some(uint64_t offset, Bytes data) override {
    if (faults_.interrupted && calls_++ % 2 == 0) return -EINTR;
    if (written_ >= faults_.full_after) return -ENOSPC;
    const size_t most = std::min<uint64_t>(faults_.at_most, faults_.full_after - written_);
    const int64_t written = OutputFile::write_some(offset, data.first(std::min(most, data.size())));
    if (written > 0) written_ += static_cast<uint64_t>(written);
    return written;
  }
  int sync() override {
    if (faults_.before_publish) faults_.before_publish();
    return faults_.sync_error != 0 ? faults_.sync_error : OutputFile::sync();
  }

 private:
  WriteFaults faults_;
  uint64_t written_ = 0, calls_ = 0;
};

}  // namespace iac::tests
