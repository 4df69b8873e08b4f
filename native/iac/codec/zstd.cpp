// Zstandard (RFC 8878). Written with the content size in the frame; frames without it, as
// streaming writers make them, are read all the same.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include <string>

#include "iac/codec/codecs.h"
#include "iac/error.h"

namespace iac {
namespace {

constexpr int default_level = 19;

ZSTD_DCtx* decoder() {
  thread_local const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                                  &ZSTD_freeDCtx);
  if (!context) throw std::bad_alloc();
  return context.get();
}

ZSTD_CCtx* encoder() {
  thread_local const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                                  &ZSTD_freeCCtx);
  if (!context) throw std::bad_alloc();
  return context.get();
}

class Zstd final : public ByteCodec {
 public:
  explicit Zstd(int level) : level_(level) {}

  std::string_view name() const override { return "zstd"; }
  std::string parameters() const override { return "{\"level\": " + std::to_string(level_) + "}"; }

  SizeHint decoded_size(Bytes payload) const override {
    if (payload.empty()) throw bad("empty payload");
    const auto size = ZSTD_findDecompressedSize(payload.data(), payload.size());
    if (size == ZSTD_CONTENTSIZE_ERROR) throw bad("payload is not a zstd frame or is cut");
    if (size != ZSTD_CONTENTSIZE_UNKNOWN) {
      // A block has at least 3 bytes and holds at most 128 KiB.
      if (size > (payload.size() / 3 + 1) * (uint64_t{128} << 10)) {
        throw bad("frame claims an impossible content size");
      }
      return {SizeHint::Kind::exact, size};
    }
    const auto bound = ZSTD_decompressBound(payload.data(), payload.size());
    if (bound == ZSTD_CONTENTSIZE_ERROR) throw bad("payload is damaged or cut");
    return {SizeHint::Kind::bound, bound};
  }

  std::optional<size_t> decode(Bytes payload, Target& target) const override {
    const SizeHint hint = decoded_size(payload);
    // A bound is often far more than what comes out, so it may be tried in less.
    const bool whole = target.grow(hint.bytes);
    if (!whole && hint.kind == SizeHint::Kind::exact) return std::nullopt;
    const size_t size = ZSTD_decompressDCtx(decoder(), target.data(), target.capacity(),
                                            payload.data(), payload.size());
    if (!ZSTD_isError(size)) return size;
    if (!whole && ZSTD_getErrorCode(size) == ZSTD_error_dstSize_tooSmall) return std::nullopt;
    throw bad(std::string("payload does not decode: ") + ZSTD_getErrorName(size));
  }

  void encode(Bytes object, std::vector<std::byte>& out) const override {
    ZSTD_CCtx_setParameter(encoder(), ZSTD_c_compressionLevel, level_);
    const size_t start = out.size();
    out.resize(start + ZSTD_compressBound(object.size()));
    const size_t size = ZSTD_compress2(encoder(), out.data() + start, out.size() - start,
                                       object.data(), object.size());
    if (ZSTD_isError(size)) throw bad(std::string("cannot encode: ") + ZSTD_getErrorName(size));
    out.resize(start + size);
  }

 private:
  int level_;
};

}  // namespace

std::shared_ptr<const Codec> make_zstd(Params& params) {
  return std::make_shared<Zstd>(
      params.integer("level", ZSTD_minCLevel(), ZSTD_maxCLevel(), default_level));
}

}  // namespace iac
