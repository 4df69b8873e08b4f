// zstd frames that our own encoder does not write.
#pragma once

#include <zstd.h>

#include <string>
#include <string_view>

namespace iac::tests {

// A frame as a streaming writer makes it, which does not say its content's size.
inline std::string frame_without_size(std::string_view object) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  std::string out(ZSTD_compressBound(object.size()) + 64, '\0');
  ZSTD_outBuffer output{out.data(), out.size(), 0};
  // Given in two parts, so that the encoder cannot know what is to come.
  ZSTD_inBuffer first{object.data(), object.size() / 2, 0};
  ZSTD_compressStream2(context, &output, &first, ZSTD_e_continue);
  ZSTD_inBuffer rest{object.data() + object.size() / 2, object.size() - object.size() / 2, 0};
  while (ZSTD_compressStream2(context, &output, &rest, ZSTD_e_end) != 0) {
  }
  ZSTD_freeCCtx(context);
  out.resize(output.pos);
  return out;
}

}  // namespace iac::tests
