// Decoding many payloads into one contiguous piece of memory, in parallel, with sizes that are
// often known only afterwards.
#pragma once

#include <memory>
#include <vector>

#include "iac/batch.h"
#include "iac/codec/codec.h"

namespace iac {

struct DecodeLimits {
  uint64_t record_bytes = uint64_t{2} << 30;   // one decoded record
  uint64_t batch_bytes = 0;                    // all of them; 0: the machine's memory
  uint64_t image_samples = uint64_t{1} << 28;  // one image, width times height times channels
  // What the caller calls the limits of a record, for errors.
  const char* record_bytes_option = "max_record_bytes";
  const char* image_samples_option = "max_samples";
};

// That a decoded record is larger than it may be.
Error too_large(const DecodeLimits& limits);

class BatchDecoder {
 public:
  // `total_payload_bytes` is what add() will be given in all: it sizes the result's memory.
  BatchDecoder(DecodeLimits limits, unsigned workers, uint64_t total_payload_bytes);

  // Decodes the next payloads of the request behind those before, payload i with codecs[i] (or
  // codecs[0] where there is one for all). `first` is the request's position of payloads[0]; those
  // that already failed are passed over. Throws Error when the batch would be too large.
  void add(std::span<const Bytes> payloads, std::span<const Codec* const> codecs, size_t first,
           Failures& failures);

  // Keeps of every record so far the part that `part` gives, see keep_parts().
  void keep(Bytes (*part)(Bytes), Failures& failures);

  Batch finish(OnError rule, Failures& failures);

 private:
  class Round;

  // Room for `needed` bytes, and for `hoped` more where there was not, keeping the first `keep`.
  void reserve(uint64_t needed, uint64_t hoped, uint64_t keep);

  DecodeLimits limits_;
  unsigned workers_;
  uint64_t total_payload_bytes_;
  uint64_t payload_bytes_ = 0;  // of the payloads decoded so far
  Buffer out_;
  uint64_t used_ = 0;
  std::vector<uint64_t> lengths_;
  std::vector<ImageShape> images_;
  bool equal_sizes_ = true;  // of all records so far, where it was tried
};

}  // namespace iac
