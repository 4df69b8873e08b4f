// The samples of pixels as integers of some type, worked on in place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iac/image.h"

namespace iac::dicom {

bool is_integer(PixelType type);
bool is_signed(PixelType type);

// Integers given more bytes each.
void widen(std::byte* samples, uint64_t count, PixelType from, PixelType to);

// Only the lower `bits` bits of integers count (PS3.5 8.1.1): those above become the sign, of
// signed ones, and else zeros.
void clear_unused_bits(std::byte* samples, uint64_t count, PixelType type, int bits);

// Numbers of `size` bytes in the other byte order.
void swap_bytes(std::byte* samples, uint64_t count, uint64_t size);

// Planes of numbers of `size` bytes, each of `pixels` one behind the other, as pixels.
void interleave(const std::byte* planes, uint64_t pixels, uint64_t channels, uint64_t size,
                std::byte* out);

// YBR_FULL (PS3.3 C.7.6.3.1.2), 3 bytes a pixel, as RGB.
void ybr_to_rgb(std::byte* samples, uint64_t pixels);

// YBR_FULL_422 with its colours of two pixels each, 4 bytes for 2 pixels, as YBR_FULL.
void double_colours(const std::byte* pairs, uint64_t pixels, std::byte* out);

}  // namespace iac::dicom
