// Files that fail on purpose.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "iac/output_file.h"
#include "iac/remote.h"

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

// A file behind a network.
struct RemoteFile {
  std::string bytes;
  std::string version = "1";
};

class TestRemote final : public RemoteSource {
 public:
  // A style of small numbers, so that small files have much of everything.
  static constexpr ReadStyle small{.gap = 1000, .group = 10000, .at_once = 4};

  explicit TestRemote(const RemoteFile& file, ReadStyle style = small)
      : RemoteSource(file.bytes.size(), file.version, style), file(file) {}
  static std::shared_ptr<TestRemote> started(const RemoteFile& file, ReadStyle style = small) {
    auto source = std::make_shared<TestRemote>(file, style);
    source->start("test.iac");
    return source;
  }

  const RemoteFile& file;
  bool tells_version = true;
  // What a request gives, and what happens before; a test may change them between reads.
  std::function<void(uint64_t offset, uint64_t length)> before = {};
  int64_t longer = 0;  // bytes too many or too few in an answer
  std::chrono::milliseconds delay{0};

  mutable std::atomic<unsigned> under_way{0}, most_under_way{0};
  mutable std::atomic<unsigned> version_questions{0};

 protected:
  uint64_t fetch(uint64_t offset, MutableBytes out) const override {
    const unsigned now = ++under_way;
    for (unsigned most = most_under_way; now > most;) {
      if (most_under_way.compare_exchange_weak(most, now)) break;
    }
    std::this_thread::sleep_for(delay);
    --under_way;
    if (before) before(offset, out.size());
    const std::string part = file.bytes.substr(std::min<size_t>(offset, file.bytes.size()));
    std::memcpy(out.data(), part.data(), std::min(part.size(), out.size()));
    return static_cast<uint64_t>(static_cast<int64_t>(std::min(part.size(), out.size())) + longer);
  }
  std::string current_version() const override {
    ++version_questions;
    return tells_version ? file.version : RemoteSource::current_version();
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
