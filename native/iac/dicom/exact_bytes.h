// Records that decode to a number of bytes that the index table tells.
#pragma once

#include <cstdint>
#include <string>

#include "iac/codec/codec.h"

namespace iac::dicom {

class ExactBytes {
 public:
  // Of records that `codec` decodes to `bytes` bytes, `image` being why.
  ExactBytes(const Codec& codec, uint64_t bytes, const ImageShape& image)
      : codec_(codec), bytes_(bytes), image_(image) {}

  uint64_t bytes() const { return bytes_; }
  // Throws Error for a payload that tells that it has another number.
  void check(Bytes payload) const;
  // Writes bytes() bytes. Throws Error for a payload of another number.
  void decode(Bytes payload, std::byte* out) const;

 private:
  Error other_size(const std::string& found) const;

  const Codec& codec_;
  uint64_t bytes_;
  ImageShape image_;
};

}  // namespace iac::dicom
