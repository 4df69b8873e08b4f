// What decodes the records of an image pack that are to be no image.
#pragma once

#include "iac/codec/codec.h"

namespace iac {

// Gives nothing, whatever the payload is.
const Codec& no_image();

}  // namespace iac
