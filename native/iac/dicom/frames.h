// Frames of pixel data that no codec of images alone makes pixels of: native ones
// (PS3.5 8.1.1, 8.2), RLE, and compressed ones whose colours are still to be converted.
#pragma once

#include <memory>

#include "iac/codec/codec.h"
#include "iac/dicom/frame_format.h"

namespace iac::dicom {

// What decodes records to images, which `stored`, a codec of bytes, decodes to frames of that
// format.
std::unique_ptr<const Codec> frame_decoder(const Codec& stored, const FrameFormat& format);

}  // namespace iac::dicom
