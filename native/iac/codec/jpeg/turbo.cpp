// libjpeg-turbo, as far as its version 2 goes: 8 bits, with loss.
#include <cstdio>

extern "C" {
#include <jerror.h>
#include <jpeglib.h>
}

#include "iac/codec/jpeg/calls.h"

namespace iac::jpeg {

std::string decode_turbo(const Decoding& job) { return decode(job); }

std::string encode_turbo(const Encoding& job) {
  return encode(job, [](jpeg_compress_struct* info, const Encoding& job) {
    jpeg_set_quality(info, job.quality, TRUE);
    if (info->num_components == 3) {
      info->comp_info[0].h_samp_factor = job.horizontal;
      info->comp_info[0].v_samp_factor = job.vertical;
    }
    if (job.progressive) jpeg_simple_progression(info);
  });
}

}  // namespace iac::jpeg
