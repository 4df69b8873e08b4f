// Decoding many payloads in one call.
#pragma once

#include <string>
#include <vector>

#include "iac/decode.h"
#include "tests/packs.h"

namespace iac::tests {

struct Decoded {
  std::vector<std::string> records;
  std::vector<RowFailure> failures;
  std::vector<int64_t> positions;
  Batch batch;
};

inline Decoded decode_all(const std::vector<std::string>& payloads,
                          const std::vector<const Codec*>& codecs, unsigned workers,
                          OnError rule = OnError::null, DecodeLimits limits = {},
                          size_t round_rows = SIZE_MAX) {
  uint64_t total = 0;
  for (const std::string& payload : payloads) total += payload.size();
  BatchDecoder decoder(limits, workers, total);
  Failures failures(payloads.size());
  for (size_t first = 0; first < payloads.size();) {
    const size_t end = std::min(
        payloads.size(), round_rows < payloads.size() ? first + round_rows : payloads.size());
    std::vector<Bytes> part;
    for (size_t i = first; i < end; ++i) part.push_back(bytes_of(payloads[i]));
    const auto part_codecs =
        codecs.size() == 1 ? std::span(codecs) : std::span(codecs).subspan(first, end - first);
    decoder.add(part, part_codecs, first, failures);
    first = end;
  }
  Decoded all;
  all.batch = decoder.finish(rule, failures);
  all.records = records_of(all.batch);
  all.failures = all.batch.failures;
  all.positions = all.batch.positions;
  return all;
}

}  // namespace iac::tests
