// What each codec's file gives to the registry.
#pragma once

#include "iac/codec/codec.h"
#include "iac/codec/params.h"

namespace iac {

std::shared_ptr<const Codec> make_none(Params& params);
std::shared_ptr<const Codec> make_zstd(Params& params);
std::shared_ptr<const Codec> make_brotli(Params& params);
std::shared_ptr<const Codec> make_jxl(Params& params);
std::shared_ptr<const Codec> make_jpeg(Params& params);
std::shared_ptr<const Codec> make_jpeg2000(Params& params);
std::shared_ptr<const Codec> make_jpegls(Params& params);

}  // namespace iac
