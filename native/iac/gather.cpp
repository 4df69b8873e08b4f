#include "iac/gather.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>

#include "iac/checksum.h"
#include "iac/interrupt.h"

namespace iac {
namespace {

// Pieces up to this size, a cheap source's, are read into memory that each thread keeps.
constexpr uint64_t kept_piece = ReadStyle{}.group;
// Where spans are shorter on average, reading a group in one piece and copying its spans out of it
// costs less than having the kernel take it apart.
constexpr uint64_t short_span = 1024;

struct Item {
  uint64_t offset;
  size_t position;  // in the request
};

// Spans in the order of the file, cut into groups that are read together.
struct Plan {
  std::vector<Item> order;
  std::vector<size_t> cuts;  // group g is order[cuts[g], cuts[g + 1])
  bool copies;               // groups are read in one piece and copied out

  std::span<const Item> group(size_t g) const {
    return std::span(order).subspan(cuts[g], cuts[g + 1] - cuts[g]);
  }
};

// By offset, and by position where that is the same: digit by digit, from the lowest.
void sort(std::vector<Item>& items) {
  constexpr unsigned bits = 11;
  constexpr uint64_t digits = 1 << bits;
  uint64_t ones = 0, zeros = 0;
  for (const Item& item : items) {
    ones |= item.offset;
    zeros |= ~item.offset;
  }
  std::vector<Item> sorted(items.size());
  for (unsigned shift = 0; shift < 64; shift += bits) {
    if (((ones & zeros) >> shift) % digits == 0) continue;  // the same in all
    std::array<size_t, digits + 1> starts{};
    for (const Item& item : items) ++starts[(item.offset >> shift) % digits + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    for (const Item& item : items) sorted[starts[(item.offset >> shift) % digits]++] = item;
    items.swap(sorted);
  }
}

Plan make_plan(std::span<const Span> spans, const ReadStyle& style) {
  Plan plan;
  plan.order.reserve(spans.size());
  uint64_t total = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    plan.order.push_back({spans[i].offset, i});
    total += spans[i].length;
  }
  plan.copies = style.expensive() || total / spans.size() < short_span;
  const auto by_offset = [](const Item& a, const Item& b) { return a.offset < b.offset; };
  if (!std::is_sorted(plan.order.begin(), plan.order.end(), by_offset)) sort(plan.order);

  plan.cuts.push_back(0);
  uint64_t start = 0, end = 0;
  for (size_t i = 0; i < plan.order.size(); ++i) {
    const Span& span = spans[plan.order[i].position];
    const bool joins = i > plan.cuts.back() && (plan.copies || span.offset >= end) &&
                       span.offset <= end + style.gap &&
                       std::max(end, span.offset + span.length) - start <= style.group;
    if (!joins) {
      if (i > 0) plan.cuts.push_back(i);
      start = span.offset;
      end = start;
    }
    end = std::max(end, span.offset + span.length);
  }
  plan.cuts.push_back(plan.order.size());
  return plan;
}

std::string hex(uint32_t value) {
  char text[11];
  std::snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

// Reads each span of a group into its place.
void read_pieces(const GatherRequest& request, std::span<const Item> group) {
  std::array<std::byte, ReadStyle{}.gap> between;
  std::vector<MutableBytes> pieces;
  pieces.reserve(group.size() * 2);
  const uint64_t start = group.front().offset;
  uint64_t at = start;
  for (const auto& [offset, position] : group) {
    const uint64_t length = request.spans[position].length;
    if (offset > at) pieces.emplace_back(between.data(), offset - at);
    pieces.emplace_back(request.out + request.places[position], length);
    at = offset + length;
  }
  request.source.read_at(request.data.offset + start, pieces);
}

// Reads a group in one piece and copies its spans, which may overlap, into their places.
void read_and_copy(const GatherRequest& request, std::span<const Item> group) {
  thread_local std::vector<std::byte> kept(kept_piece);
  const uint64_t start = group.front().offset;
  uint64_t end = start;
  for (const auto& [offset, position] : group) {
    end = std::max(end, offset + request.spans[position].length);
  }
  Buffer own;
  MutableBytes piece = kept;
  if (end - start > piece.size()) {
    own = Buffer::allocate(end - start);
    own.set_size(end - start);
    piece = own.bytes();
  }
  request.source.read_at(request.data.offset + start, piece.first(end - start));
  for (const auto& [offset, position] : group) {
    const std::byte* from = piece.data() + (offset - start);
    std::copy_n(from, request.spans[position].length, request.out + request.places[position]);
  }
}

void read_group(const GatherRequest& request, std::span<const Item> group, bool copies) {
  if (copies && group.size() > 1) {
    read_and_copy(request, group);
  } else {
    read_pieces(request, group);
  }
}

// Where reads are expensive the first error is that of all that was not read yet: a server that
// does not answer is not asked again for each group.
class Outage {
 public:
  // Reads unless there is an outage. Throws what ended it.
  template <class Read>
  void guard(Read read) {
    {
      const std::lock_guard lock(mutex_);
      if (error_.has_value()) throw Error(*error_);
    }
    try {
      read();
    } catch (const Error& error) {
      const std::lock_guard lock(mutex_);
      if (!error_.has_value()) error_ = error;
      throw;
    }
  }

 private:
  std::mutex mutex_;
  std::optional<Error> error_;
};

// A group whose read failed is read again span by span, so that the error is of the rows it hits,
// where reads are cheap.
void fetch(const GatherRequest& request, std::span<const Item> group, bool copies, size_t first,
           Outage& outage, Failures& failures) {
  bool whole = true;
  try {
    if (request.source.style().expensive()) {
      outage.guard([&] { read_group(request, group, copies); });
    } else {
      read_group(request, group, copies);
    }
  } catch (const Error& error) {
    if (request.source.style().expensive()) {
      for (const Item& item : group) failures.add(first + item.position, error);
      return;
    }
    whole = false;
  }
  for (const Item& item : group) {
    const Span& span = request.spans[item.position];
    try {
      if (!whole) read_pieces(request, {&item, 1});
      if (request.verify && span.has_crc32) {
        check(span, {request.out + request.places[item.position], span.length});
      }
    } catch (const Error& error) {
      failures.add(first + item.position, error);
    }
  }
}

}  // namespace

void check(const Span& span, Bytes record) {
  const uint32_t found = crc32(record);
  if (found == span.crc32) return;
  throw Error(Error::Kind::checksum, "stored bytes are damaged: their crc32 is " + hex(found) +
                                         ", the index says " + hex(span.crc32) +
                                         "; restore the pack, or read it without verification");
}

void gather(const GatherRequest& request, size_t first, Failures& failures) {
  if (request.spans.empty()) return;
  const Plan plan = make_plan(request.spans, request.source.style());
  Outage outage;
  request.source.for_each_read(plan.cuts.size() - 1, request.workers, [&](size_t g) {
    check_interrupt();
    fetch(request, plan.group(g), plan.copies, first, outage, failures);
  });
}

}  // namespace iac
