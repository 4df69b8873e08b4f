#include "iac/gather.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>

#include "iac/checksum.h"
#include "iac/workers.h"

namespace iac {
namespace {

// Spans this near to each other are one read, which also fetches the bytes between.
constexpr uint64_t max_gap = 4096;
// One read fetches at most so much, so that checksums find it in the cache.
constexpr uint64_t max_group = 256 << 10;
constexpr size_t max_group_spans = 128;

// Positions of spans in the order of the file, cut into groups that are read together.
struct Plan {
  std::vector<size_t> order;
  std::vector<size_t> cuts;  // group g is order[cuts[g], cuts[g + 1])
};

Plan make_plan(std::span<const Span> spans) {
  Plan plan;
  plan.order.resize(spans.size());
  std::iota(plan.order.begin(), plan.order.end(), size_t{0});
  const auto by_offset = [&](size_t a, size_t b) { return spans[a].offset < spans[b].offset; };
  if (!std::is_sorted(plan.order.begin(), plan.order.end(), by_offset)) {
    std::stable_sort(plan.order.begin(), plan.order.end(), by_offset);
  }
  plan.cuts.push_back(0);
  uint64_t start = 0, end = 0;
  for (size_t i = 0; i < plan.order.size(); ++i) {
    const Span& span = spans[plan.order[i]];
    const bool joins = i > plan.cuts.back() && span.offset >= end && span.offset - end <= max_gap &&
                       span.offset + span.length - start <= max_group &&
                       i - plan.cuts.back() < max_group_spans;
    if (!joins) {
      if (i > 0) plan.cuts.push_back(i);
      start = span.offset;
    }
    end = span.offset + span.length;
  }
  plan.cuts.push_back(plan.order.size());
  return plan;
}

std::string hex(uint32_t value) {
  char text[11];
  std::snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

void check(const Span& span, Bytes record) {
  const uint32_t found = crc32(record);
  if (found == span.crc32) return;
  throw Error(Error::Kind::checksum,
              "stored bytes are damaged: their crc32 is " + hex(found) + ", the index says " +
                  hex(span.crc32) + "; restore the pack, or pass verify=False to read them anyway");
}

void read_group(const GatherRequest& request, std::span<const size_t> group) {
  std::array<std::byte, max_gap> between;
  std::vector<MutableBytes> pieces;
  pieces.reserve(group.size() * 2);
  const uint64_t start = request.spans[group.front()].offset;
  uint64_t at = start;
  for (const size_t position : group) {
    const Span& span = request.spans[position];
    if (span.offset > at) pieces.emplace_back(between.data(), span.offset - at);
    pieces.emplace_back(request.out + request.places[position], span.length);
    at = span.offset + span.length;
  }
  request.source.read_at(request.data.offset + start, pieces);
}

// A group whose read failed is read again span by span, so that the error is of the rows it hits.
void fetch(const GatherRequest& request, std::span<const size_t> group, size_t first,
           Failures& failures) {
  bool whole = true;
  try {
    read_group(request, group);
  } catch (const Error&) {
    whole = false;
  }
  for (const size_t position : group) {
    const Span& span = request.spans[position];
    try {
      if (!whole) read_group(request, {&position, 1});
      if (request.verify && span.has_crc32) {
        check(span, {request.out + request.places[position], span.length});
      }
    } catch (const Error& error) {
      failures.add(first + position, error);
    }
  }
}

}  // namespace

void gather(const GatherRequest& request, size_t first, Failures& failures) {
  if (request.spans.empty()) return;
  const Plan plan = make_plan(request.spans);
  const size_t groups = plan.cuts.size() - 1;
  parallel_for(groups, worker_count(request.workers, groups), [&](size_t g) {
    const auto group =
        std::span(plan.order).subspan(plan.cuts[g], plan.cuts[g + 1] - plan.cuts[g]);
    fetch(request, group, first, failures);
  });
}

}  // namespace iac
