// CRC-32 as zlib computes it (polynomial 0xEDB88320), the checksum of a pack's records.
#pragma once

#include <cstdint>

#include "iac/bytes.h"

namespace iac {

uint32_t crc32(Bytes data);

}  // namespace iac
