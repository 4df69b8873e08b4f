// Where the bytes of a pack come from. Everything that reads a pack reads through here, into
// memory that the caller owns, so a file that shrinks or fails is an error and never a crash.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "iac/bytes.h"
#include "iac/error.h"

namespace iac {

struct Segment {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// How a source wants to be read. As it stands here: a local file.
struct ReadStyle {
  uint64_t gap = 4096;         // ranges this near to each other are one read, what is between too
  uint64_t group = 256 << 10;  // one read joins at most so much
  // Reads under way at a time, where one is expensive, for it mostly waits; 0: reads are cheap.
  unsigned at_once = 0;

  bool expensive() const { return at_once > 0; }
};

class Source {
 public:
  virtual ~Source() = default;

  const ReadStyle& style() const { return style_; }

  uint64_t size() const { return size_; }

  // Two sources with the same identity hold the same bytes.
  const std::string& identity() const { return identity_; }

  // Fills every piece, one behind the other, from `offset` on. Any number of threads at once.
  // Throws Error when the source ends before or cannot be read.
  void read_at(uint64_t offset, std::span<const MutableBytes> pieces) const;
  void read_at(uint64_t offset, MutableBytes out) const { read_at(offset, {&out, 1}); }

  // Runs body(0) to body(reads - 1), each of which reads, with as many at a time as the style says:
  // cheap ones on the worker pool, others on threads of their own.
  void for_each_read(size_t reads, unsigned workers, const std::function<void(size_t)>& body) const;

  // Throws Error when what was read so far may be of several versions of the file. Whoever has
  // read bytes that no crc32 vouches for asks before he hands them out.
  virtual void confirm() const {}

  // What `body` gives, confirmed; where it fails because the file changed, that is the error.
  template <class Body>
  auto confirmed(Body body) const {
    try {
      if constexpr (std::is_void_v<decltype(body())>) {
        body();
        confirm();
      } else {
        auto result = body();
        confirm();
        return result;
      }
    } catch (const Error&) {
      confirm();
      throw;
    }
  }

  // The bytes up to `end` are about to be read, so an expensive source may keep them. Not while
  // others read.
  virtual void keep_head(uint64_t /*end*/) {}

 protected:
  Source(uint64_t size, std::string identity, ReadStyle style = {})
      : size_(size), identity_(std::move(identity)), style_(style) {}

  // For those that learn it after they were made.
  void set_identity(std::string identity) { identity_ = std::move(identity); }

  // One attempt: the number of bytes read, which may be fewer than asked for, 0 at the end, or a
  // negative errno.
  virtual int64_t read_some(uint64_t offset, std::span<const MutableBytes> pieces) const = 0;

 private:
  uint64_t size_;
  std::string identity_;
  ReadStyle style_;
};

// A file of this machine, read by position through one descriptor: it stays the file that was
// opened when another one takes its name.
class LocalSource : public Source {
 public:
  static std::shared_ptr<LocalSource> open(const std::string& path);
  ~LocalSource() override;
  int descriptor() const { return descriptor_; }

 protected:
  int64_t read_some(uint64_t offset, std::span<const MutableBytes> pieces) const override;

 private:
  LocalSource(int descriptor, uint64_t size, std::string identity)
      : Source(size, std::move(identity)), descriptor_(descriptor) {}
  int descriptor_;
};

// What identity() of the file now at `path` would be; empty when there is none.
std::string local_identity(const std::string& path);

}  // namespace iac
