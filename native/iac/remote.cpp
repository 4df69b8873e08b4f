#include "iac/remote.h"

#include <algorithm>
#include <string_view>

#include "iac/error.h"
#include "iac/header.h"
#include "iac/interrupt.h"
#include "iac/workers.h"

namespace iac {

static std::string hash_of(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return std::to_string(std::hash<std::string_view>()(text));
}

static Bytes header_of(const Buffer& head) {
  return head.bytes().first(std::min<size_t>(head.size(), header_bytes));
}

RemoteSource::RemoteSource(uint64_t size, std::string version, ReadStyle style)
    : Source(size, {}, style), version_(std::move(version)) {
  if (!style.expensive() || style.group == 0) {
    throw Error(Error::Kind::argument, "a remote source needs requests and groups of 1 or more");
  }
}

void RemoteSource::start(const std::string& path) {
  try {
    keep_head(std::min(size(), first_bytes));
    if (requests_ == 1) confirmation_->due = false;  // one answer is of one version
  } catch (Error& error) {
    throw std::move(error).in(path);
  }
  set_identity(std::to_string(size()) + ':' + hash_of(header_of(head_)) + ':' + version_);
}

void RemoteSource::keep_head(uint64_t end) {
  if (end <= head_.size() || end > max_head) return;
  Buffer longer = Buffer::allocate(end);
  longer.set_size(end);
  std::copy_n(head_.data(), head_.size(), longer.data());
  const uint64_t begin = head_.size();
  request_parts(begin, longer.bytes().subspan(begin));
  head_ = std::move(longer);
}

int64_t RemoteSource::read_some(uint64_t offset, std::span<const MutableBytes> pieces) const {
  const MutableBytes out = pieces.front();
  if (offset < head_.size()) {
    const Bytes known = head_.bytes().subspan(offset);
    const size_t count = std::min(known.size(), out.size());
    std::copy_n(known.data(), count, out.data());
    return static_cast<int64_t>(count);
  }
  if (offset >= size()) return 0;
  const MutableBytes inside = out.first(std::min<uint64_t>(out.size(), size() - offset));
  request_parts(offset, inside);
  return static_cast<int64_t>(inside.size());
}

void RemoteSource::request_parts(uint64_t offset, MutableBytes out) const {
  const uint64_t most = style().group;
  const size_t parts = (out.size() + most - 1) / most;
  try {
    for_each_read(parts, 0, [&](size_t i) {
      const uint64_t begin = i * most;
      request(offset + begin, out.subspan(begin, std::min<uint64_t>(most, out.size() - begin)));
    });
  } catch (...) {
    confirmation_->due = true;
    throw;
  }
  confirmation_->due = true;
}

void RemoteSource::enter() const {
  Slots& slots = *slots_;
  std::unique_lock lock(slots.mutex);
  const auto is_free = [&] { return slots.taken < style().at_once; };
  while (!slots.freed.wait_for(lock, interrupt_interval, is_free)) {
    lock.unlock();
    require_wanted();
    check_interrupt();
    lock.lock();
  }
  ++slots.taken;
}

void RemoteSource::leave() const {
  Slots& slots = *slots_;
  {
    const std::lock_guard lock(slots.mutex);
    --slots.taken;
  }
  slots.freed.notify_one();
}

void RemoteSource::request(uint64_t offset, MutableBytes out) const {
  require_wanted();
  enter();
  ++requests_;
  uint64_t got = 0;
  try {
    got = fetch(offset, out);
  } catch (...) {
    leave();
    throw;
  }
  leave();
  bytes_ += got;
  if (got == out.size()) return;
  throw Error(
      Error::Kind::pack,
      "asked for " + std::to_string(out.size()) + " bytes at " + std::to_string(offset) +
          ", the answer has " + std::to_string(got) +
          (got < out.size() ? ": has the file changed?" : ": does the server ignore ranges?"));
}

std::string RemoteSource::current_version() const {
  const Bytes known = header_of(head_);
  std::vector<std::byte> now(known.size());
  request(0, now);
  return std::equal(now.begin(), now.end(), known.begin()) ? version_ : version_ + '?';
}

void RemoteSource::confirm() const {
  Confirmation& confirmation = *confirmation_;
  const std::lock_guard lock(confirmation.mutex);
  if (!confirmation.changed && confirmation.due.exchange(false)) {
    try {
      confirmation.changed = current_version() != version_;
    } catch (...) {
      confirmation.due = true;
      throw;
    }
  }
  if (confirmation.changed) {
    throw Error(Error::Kind::pack, "the file has changed since it was opened, open it again");
  }
}

Prefetched::Prefetched(const Source& source, std::vector<Segment> ranges)
    : Source(source.size(), {}, source.style()), source_(source) {
  if (!style().expensive()) return;
  // What is long is read well enough by itself.
  std::erase_if(ranges, [&](const Segment& range) {
    return range.length == 0 || range.length >= style().group;
  });
  std::sort(ranges.begin(), ranges.end(),
            [](const Segment& a, const Segment& b) { return a.offset < b.offset; });
  std::vector<Segment> joined;
  for (const Segment& range : ranges) {
    if (!joined.empty()) {
      Segment& last = joined.back();
      const uint64_t end = std::max(last.offset + last.length, range.offset + range.length);
      const bool overlaps = range.offset < last.offset + last.length;
      if (overlaps || (range.offset <= last.offset + last.length + style().gap &&
                       end - last.offset <= style().group)) {
        last.length = end - last.offset;
        continue;
      }
    }
    joined.push_back(range);
  }
  for (const Segment& range : joined) {
    pieces_.push_back({range.offset, Buffer::allocate(range.length)});
    pieces_.back().bytes.set_size(range.length);
  }
  source.for_each_read(pieces_.size(), 0, [&](size_t i) {
    source.read_at(pieces_[i].offset, pieces_[i].bytes.bytes());
  });
}

int64_t Prefetched::read_some(uint64_t offset, std::span<const MutableBytes> pieces) const {
  const MutableBytes out = pieces.front();
  const auto behind =
      std::upper_bound(pieces_.begin(), pieces_.end(), offset,
                       [](uint64_t at, const Piece& piece) { return at < piece.offset; });
  if (behind != pieces_.begin()) {
    const Piece& piece = *std::prev(behind);
    if (const uint64_t skip = offset - piece.offset; skip < piece.bytes.size()) {
      const size_t count = std::min<uint64_t>(piece.bytes.size() - skip, out.size());
      std::copy_n(piece.bytes.data() + skip, count, out.data());
      return static_cast<int64_t>(count);
    }
  }
  source_.read_at(offset, pieces);
  uint64_t total = 0;
  for (const MutableBytes piece : pieces) total += piece.size();
  return static_cast<int64_t>(total);
}

}  // namespace iac
