// JPEG 2000 by OpenJPEG: everything classic, and the HT codestreams that OpenJPH does not decode.
#pragma once

#include <functional>
#include <vector>

#include "iac/bytes.h"
#include "iac/codec/jpeg2000/codestream.h"
#include "iac/image.h"

namespace iac::j2k {

// Gives the decoded components to `take`.
void decode_openjpeg(const Codestream& stream,
                     const std::function<void(const std::vector<const int32_t*>&)>& take);

void encode_openjpeg(const ImageShape& shape, const std::byte* pixels, bool lossless,
                     std::vector<std::byte>& out);

}  // namespace iac::j2k
