// Files that are reached by requests, each of which takes its time: as few of them as will do.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "iac/buffers.h"
#include "iac/per_process.h"
#include "iac/source.h"

namespace iac {

// What suits a store some ten milliseconds away. A request costs as much time as the bytes of a
// gap.
constexpr ReadStyle remote_style{.gap = 128 << 10, .group = 4 << 20, .at_once = 16};

// The base of sources that ask for ranges. It keeps the head of the file in memory, splits what is
// long, and has at most `at_once` requests under way, however many threads read.
class RemoteSource : public Source {
 public:
  // Bytes that the first request asks for: a pack's header, and for many packs both tables.
  static constexpr uint64_t first_bytes = 256 << 10;
  // So much of the head is kept.
  static constexpr uint64_t max_head = 4 << 20;

  // Fetches the head; makes the identity of size, header and version. To be called once, before
  // anything else, by whoever makes the source. `path` names the file in errors.
  void start(const std::string& path);

  // Keeps [0, end) in memory, if it is no more than max_head.
  void keep_head(uint64_t end) override;

  // Asks the store for the version when anything was fetched since it was last asked. Throws
  // Error(pack) when it is another than at the start, from then on for ever.
  void confirm() const override;

  uint64_t requests() const { return requests_; }
  uint64_t bytes_received() const { return bytes_; }

 protected:
  // `version` is what the store tells of the file that changes when the file does.
  RemoteSource(uint64_t size, std::string version, ReadStyle style = remote_style);

  // One request: fills `out`, which is not empty and inside the file, from `offset` on. Returns the
  // bytes that the answer had, of which those beyond `out` are dropped by the backend. Throws
  // Error, soon once stop_requested(). Any number of threads at once.
  virtual uint64_t fetch(uint64_t offset, MutableBytes out) const = 0;

  // The version now. As it stands here, for stores that tell none: that of the constructor, if the
  // header's bytes are still the same.
  virtual std::string current_version() const;

  int64_t read_some(uint64_t offset, std::span<const MutableBytes> pieces) const final;

 private:
  struct Slots {  // requests under way
    std::mutex mutex;
    std::condition_variable freed;
    unsigned taken = 0;
  };
  struct Confirmation {
    std::mutex mutex;
    std::atomic<bool> due{false};
    bool changed = false;
  };

  void enter() const;  // waits for a slot
  void leave() const;
  void request(uint64_t offset, MutableBytes out) const;
  void request_parts(uint64_t offset, MutableBytes out) const;

  std::string version_;
  Buffer head_;
  PerProcess<Slots> slots_;
  PerProcess<Confirmation> confirmation_;
  mutable std::atomic<uint64_t> requests_{0}, bytes_{0};
};

// Ranges of a source where reads are expensive, read together: neighbours as one, all at once.
// Reads elsewhere, and all reads of other sources, go to the source, which must outlive this.
class Prefetched final : public Source {
 public:
  Prefetched(const Source& source, std::vector<Segment> ranges);

 protected:
  int64_t read_some(uint64_t offset, std::span<const MutableBytes> pieces) const override;

 private:
  struct Piece {
    uint64_t offset;
    Buffer bytes;
  };
  const Source& source_;
  std::vector<Piece> pieces_;  // by offset, apart from each other
};

}  // namespace iac
