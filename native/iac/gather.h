// Fetching the stored bytes of many records into one piece of memory.
#pragma once

#include <vector>

#include "iac/batch.h"
#include "iac/layout.h"

namespace iac {

struct GatherRequest {
  const Source& source;
  const Segment& data;               // the data segment
  std::span<const Span> spans;       // what to fetch, in this order, all inside the data segment
  std::span<const uint64_t> places;  // where each goes in `out`
  std::byte* out;
  unsigned workers;
  bool verify;
};

// Reads neighbouring spans together, verifies each crc32, and reports what failed: an error of a
// record's own read or checksum leaves the others alone. `first` is the position of spans[0] in
// the whole request.
void gather(const GatherRequest& request, size_t first, Failures& failures);

// Throws Error(checksum) when the stored bytes of a span have another crc32 than the index says.
void check(const Span& span, Bytes record);

}  // namespace iac
