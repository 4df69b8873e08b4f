// The limit that gather.py compares with: what is left when a reader does nothing but call the
// codec's library. Each record is read with one pread and decoded with one call, into memory that
// is there, was used before and has the right size. No checksum, no errors to speak of.
#include <brotli/decode.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace {

enum class CodecId { none = 0, zstd = 1, brotli = 2 };

struct Request {
  int file;
  CodecId codec;
  uint64_t count;
  const uint64_t* offsets;  // of the stored record in the file
  const uint64_t* lengths;
  const uint64_t* places;  // count + 1, of the decoded record in `out`
  uint8_t* out;
};

class Thread {
 public:
  bool read(const Request& request, uint64_t record) {
    const uint64_t length = request.lengths[record], size = size_of(request, record);
    uint8_t* const out = request.out + request.places[record];
    const bool decodes = request.codec != CodecId::none;
    if (decodes && scratch_.size() < length) scratch_.resize(length);
    uint8_t* const stored = decodes ? scratch_.data() : out;
    const ssize_t got =
        pread(request.file, stored, length, static_cast<off_t>(request.offsets[record]));
    if (got != static_cast<ssize_t>(length)) return false;
    switch (request.codec) {
      case CodecId::none:
        return length == size;
      case CodecId::zstd:
        return ZSTD_decompressDCtx(context_.get(), out, size, stored, length) == size;
      case CodecId::brotli: {
        size_t written = size;
        return BrotliDecoderDecompress(length, stored, &written, out) ==
                   BROTLI_DECODER_RESULT_SUCCESS &&
               written == size;
      }
    }
    return false;
  }

 private:
  static uint64_t size_of(const Request& request, uint64_t record) {
    return request.places[record + 1] - request.places[record];
  }

  std::vector<uint8_t> scratch_;
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_{ZSTD_createDCtx(), &ZSTD_freeDCtx};
};

}  // namespace

// Returns the number of records that could not be read.
extern "C" uint64_t library_loop(int file, int codec, uint64_t count, const uint64_t* offsets,
                                 const uint64_t* lengths, const uint64_t* places, uint8_t* out,
                                 unsigned threads) {
  const Request request{file, static_cast<CodecId>(codec), count, offsets, lengths, places, out};
  std::atomic<uint64_t> next{0}, failed{0};
  const auto work = [&] {
    Thread thread;
    for (uint64_t record; (record = next.fetch_add(1)) < count;) {
      if (!thread.read(request, record)) ++failed;
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return failed;
}
