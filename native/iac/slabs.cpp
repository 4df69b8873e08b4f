#include "iac/slabs.h"

#include <future>
#include <vector>

namespace iac {
namespace {

// So many that threads seldom wait for each other between fetching and using.
constexpr uint64_t slab_bytes = uint64_t{32} << 20;
constexpr size_t slab_rows = 1 << 16;

struct Slab {
  size_t first;
  Buffer stored;
  std::vector<Bytes> payloads;
};

Slab fetch(const SlabRequest& request, size_t first, Failures& failures) {
  const size_t count = request.spans.size();
  const uint64_t start = request.places[first];
  size_t end = first;
  while (end < count && end - first < slab_rows &&
         (end == first || request.places[end + 1] - start <= slab_bytes)) {
    ++end;
  }
  Slab slab{first, Buffer::allocate(request.places[end] - start), {}};
  slab.stored.set_size(request.places[end] - start);
  std::vector<uint64_t> places;
  for (size_t i = first; i < end; ++i) {
    places.push_back(request.places[i] - start);
    slab.payloads.emplace_back(slab.stored.data() + places.back(), request.spans[i].length);
  }
  gather({request.source, request.data, request.spans.subspan(first, end - first), places,
          slab.stored.data(), request.workers, request.verify},
         first, failures);
  return slab;
}

}  // namespace

void for_each_slab(const SlabRequest& request, Failures& failures, const UseSlab& use) {
  const auto use_slab = [&use](const Slab& slab) { use(slab.first, slab.payloads); };
  const size_t count = request.spans.size();
  std::future<void> using_one;  // where reads are expensive, beside the next slab's
  for (size_t first = 0; first < count;) {
    if (request.on_error == OnError::raise && failures.any_before(first)) break;
    Slab slab = fetch(request, first, failures);
    first += slab.payloads.size();
    if (using_one.valid()) using_one.get();
    if (request.source.style().expensive() && first < count) {
      using_one = std::async(std::launch::async, use_slab, std::move(slab));
    } else {
      use_slab(slab);
    }
  }
  if (using_one.valid()) using_one.get();
}

}  // namespace iac
