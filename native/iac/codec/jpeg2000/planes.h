// Components as the libraries hold them, 32 bits a sample, and pixels as images hold them.
#pragma once

#include <vector>

#include "iac/codec/jpeg2000/boxes.h"
#include "iac/codec/jpeg2000/codestream.h"
#include "iac/image.h"

namespace iac::j2k {

// The lowest and highest value of samples.
struct Range {
  int32_t low, high;
};
Range range_of(uint32_t precision, bool is_signed);

PixelType type_of(uint32_t precision, bool is_signed);

// One row of `width` pixels from a row of each channel. Values beyond the range are limited to it.
void interleave(const int32_t* const* channels, uint32_t count, uint32_t width, Range range,
                PixelType type, std::byte* pixels);

// A row of one channel from a row of pixels, unsigned.
void take_channel(const std::byte* pixels, PixelType type, uint32_t channels, uint32_t channel,
                  uint32_t width, int32_t* row);

// Whether components have to be worked on before they are an image's channels.
bool needs_conversion(const Boxes& boxes, const Codestream& stream);

// Components made into channels: palette, sampling, sYCC and order, all as large as the first.
std::vector<std::vector<int32_t>> convert(const Boxes& boxes, const Codestream& stream,
                                          const std::vector<const int32_t*>& components);

}  // namespace iac::j2k
