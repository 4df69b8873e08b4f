// GDCM's libjpeg for 12 bits with loss. Chrominance that is subsampled in height only is repeated,
// where newer libraries interpolate.
#include <cstdio>

extern "C" {
#include <gdcmjpeg/12/jerror.h>
#include <gdcmjpeg/12/jpeglib.h>
}

#include "iac/codec/jpeg/calls.h"

namespace iac::jpeg {

std::string decode_gdcm12(const Decoding& job) { return decode(job); }

}  // namespace iac::jpeg
