// Fetching the stored bytes of many records some at a time, for work that needs no more of them
// than that at once.
#pragma once

#include <functional>

#include "iac/gather.h"

namespace iac {

struct SlabRequest {
  const Source& source;
  const Segment& data;               // the data segment
  std::span<const Span> spans;       // what to fetch, in this order, all inside the data segment
  std::span<const uint64_t> places;  // of each in one piece, and the sum behind them
  unsigned workers;
  bool verify;
  OnError on_error;
};

// What is done with the payloads of a slab, `first` being the position of payloads[0] in the whole
// request. Those that failed are there as well.
using UseSlab = std::function<void(size_t first, std::span<const Bytes> payloads)>;

// Calls `use` with one slab after another; where reads are expensive, while the next is fetched.
// Reports what could not be fetched. Under OnError::raise a failure ends it with its slab, or where
// reads are expensive with the one behind.
void for_each_slab(const SlabRequest& request, Failures& failures, const UseSlab& use);

}  // namespace iac
