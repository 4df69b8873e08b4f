// The markers of a JPEG-LS stream.
#pragma once

#include "iac/bytes.h"

namespace iac {

// What a stream has that CharLS takes without a check and decodes to other pixels, or past its
// memory: scans of different kinds in one image, sample values of another range than their bits,
// and interleaved samples whose statistics are halved at other times than usual. Null when there
// is nothing; other damage is left to CharLS.
const char* trap_in_jpegls(Bytes stream);

}  // namespace iac
