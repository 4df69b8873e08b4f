// CRC-32 as zlib computes it (polynomial 0xEDB88320), the checksum of a pack's records.
#pragma once

#include <libdeflate.h>

#include "iac/bytes.h"

namespace iac {

// The checksum of `data`, or of what `before` is the checksum of with `data` behind it.
inline uint32_t crc32(Bytes data, uint32_t before = 0) {
  return libdeflate_crc32(before, data.data(), data.size());
}

}  // namespace iac
