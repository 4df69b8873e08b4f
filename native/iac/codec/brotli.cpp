// Brotli (RFC 7932), raw streams. A stream does not tell its decoded size.
#include <brotli/decode.h>
#include <brotli/encode.h>

#include <algorithm>

#include "iac/codec/codecs.h"
#include "iac/error.h"

namespace iac {
namespace {

class Brotli final : public ByteCodec {
 public:
  Brotli(int quality, int lgwin) : quality_(quality), lgwin_(lgwin) {}

  std::string_view name() const override { return "brotli"; }
  std::string parameters() const override {
    return "{\"quality\": " + std::to_string(quality_) + ", \"lgwin\": " + std::to_string(lgwin_) +
           "}";
  }

  SizeHint decoded_size(Bytes payload) const override {
    if (payload.empty()) throw bad("empty payload");
    return {};
  }

  // Bytes behind the end of the stream are passed over, as other readers of the format do.
  std::optional<size_t> decode(Bytes payload, Target& target) const override {
    decoded_size(payload);
    const std::unique_ptr<BrotliDecoderState, decltype(&BrotliDecoderDestroyInstance)> state(
        BrotliDecoderCreateInstance(nullptr, nullptr, nullptr), &BrotliDecoderDestroyInstance);
    if (!state) throw std::bad_alloc();
    const auto* in = reinterpret_cast<const uint8_t*>(payload.data());
    size_t in_left = payload.size(), size = 0;
    while (true) {
      auto* out = reinterpret_cast<uint8_t*>(target.data() + size);
      size_t out_left = target.capacity() - size;
      const auto result =
          BrotliDecoderDecompressStream(state.get(), &in_left, &in, &out_left, &out, nullptr);
      size = target.capacity() - out_left;
      if (result == BROTLI_DECODER_RESULT_SUCCESS) return size;
      if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT) throw bad("payload is cut");
      if (result == BROTLI_DECODER_RESULT_ERROR) {
        throw bad(std::string("payload does not decode: ") +
                  BrotliDecoderErrorString(BrotliDecoderGetErrorCode(state.get())));
      }
      const size_t first_guess = std::max<size_t>(payload.size() * 4, 4096);
      if (!target.grow(size + std::max(size, first_guess)) && !target.grow(size + 1)) {
        return std::nullopt;
      }
    }
  }

  void encode(Bytes object, std::vector<std::byte>& out) const override {
    const size_t start = out.size();
    size_t size = std::max<size_t>(BrotliEncoderMaxCompressedSize(object.size()), 16);
    out.resize(start + size);
    const bool done = BrotliEncoderCompress(quality_, lgwin_, BROTLI_MODE_GENERIC, object.size(),
                                            reinterpret_cast<const uint8_t*>(object.data()), &size,
                                            reinterpret_cast<uint8_t*>(out.data() + start));
    if (!done) throw bad("cannot encode");
    out.resize(start + size);
  }

 private:
  int quality_, lgwin_;
};

}  // namespace

std::shared_ptr<const Codec> make_brotli(Params& params) {
  const int quality =
      params.integer("quality", BROTLI_MIN_QUALITY, BROTLI_MAX_QUALITY, BROTLI_MAX_QUALITY);
  const int lgwin = params.integer("lgwin", BROTLI_MIN_WINDOW_BITS, BROTLI_MAX_WINDOW_BITS,
                                   BROTLI_MAX_WINDOW_BITS);
  return std::make_shared<Brotli>(quality, lgwin);
}

}  // namespace iac
