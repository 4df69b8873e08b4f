// RLE Lossless: PS3.5 annex G.
#pragma once

#include <cstdint>

#include "iac/bytes.h"

namespace iac::dicom {

// Throws Error for a frame too short to have numbers of `size` bytes, `pixels` of each channel.
void check_rle(Bytes frame, uint64_t pixels, uint64_t channels, uint64_t size);

// Decodes a frame to planes, one a channel, of little-endian numbers. Throws Error for a damaged
// one.
void decode_rle(Bytes frame, uint64_t pixels, uint64_t channels, uint64_t size, std::byte* planes);

}  // namespace iac::dicom
