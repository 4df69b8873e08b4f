// GDCM's libjpeg for 9 to 16 bits without loss.
#include <cstdio>

extern "C" {
#include <gdcmjpeg/16/jerror.h>
#include <gdcmjpeg/16/jpeglib.h>
}

#include "iac/codec/jpeg/calls.h"

namespace iac::jpeg {

std::string decode_gdcm16(const Decoding& job) { return decode(job); }

std::string encode_gdcm16(const Encoding& job) {
  return encode(job, [](jpeg_compress_struct* info, const Encoding&) {
    jpeg_simple_lossless(info, 1, 0);
    info->optimize_coding = TRUE;
  });
}

}  // namespace iac::jpeg
