// CRC-32 as zlib computes it (polynomial 0xEDB88320), the checksum of a pack's records.
#pragma once

#include <libdeflate.h>

#include "iac/bytes.h"

namespace iac {

inline uint32_t crc32(Bytes data) { return libdeflate_crc32(0, data.data(), data.size()); }

}  // namespace iac
