// High-throughput JPEG 2000 (ISO 15444-15) by OpenJPH.
#pragma once

#include <vector>

#include "iac/bytes.h"
#include "iac/codec/jpeg2000/codestream.h"
#include "iac/image.h"

namespace iac::j2k {

// For plain HT only, see Codestream.
void decode_openjph(const Codestream& stream, const ImageShape& shape, std::byte* pixels);

void encode_openjph(const ImageShape& shape, const std::byte* pixels, bool lossless,
                    std::vector<std::byte>& out);

}  // namespace iac::j2k
