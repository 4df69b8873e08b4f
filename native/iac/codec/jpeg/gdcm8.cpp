// GDCM's libjpeg for up to 8 bits without loss.
#include <cstdio>

extern "C" {
#include <gdcmjpeg/8/jerror.h>
#include <gdcmjpeg/8/jpeglib.h>
}

#include "iac/codec/jpeg/calls.h"

namespace iac::jpeg {

std::string decode_gdcm8(const Decoding& job) { return decode(job); }

std::string encode_gdcm8(const Encoding& job) {
  return encode(job, [](jpeg_compress_struct* info, const Encoding&) {
    jpeg_simple_lossless(info, 1, 0);
    info->optimize_coding = TRUE;
  });
}

}  // namespace iac::jpeg
