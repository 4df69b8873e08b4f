// The limit that gather.py compares with: what is left when a reader does nothing but call the
// codec's library. Each record is read with one pread and decoded with one call, into memory that
// is there, was used before and has the right size. No checksum, no errors to speak of.
#include <brotli/decode.h>
#include <unistd.h>
#include <zstd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
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

// Threads that stay from one call to the next, so that starting them is not measured.
class Team {
 public:
  void run(unsigned threads, const std::function<void(Thread&)>& work) {
    {
      const std::lock_guard lock(mutex_);
      work_ = &work;
      wanted_ = running_ = threads - 1;
      while (started_ < threads - 1) {
        std::thread([this] { help(); }).detach();
        ++started_;
      }
    }
    wake_.notify_all();
    work(own_);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return running_ == 0; });
  }

 private:
  void help() {
    Thread thread;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return wanted_ > 0; });
      --wanted_;
      lock.unlock();
      (*work_)(thread);
      lock.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  Thread own_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(Thread&)>* work_ = nullptr;
  unsigned started_ = 0, wanted_ = 0, running_ = 0;
};

}  // namespace

// Returns the number of records that could not be read.
extern "C" uint64_t library_loop(int file, int codec, uint64_t count, const uint64_t* offsets,
                                 const uint64_t* lengths, const uint64_t* places, uint8_t* out,
                                 unsigned threads) {
  const Request request{file, static_cast<CodecId>(codec), count, offsets, lengths, places, out};
  std::atomic<uint64_t> next{0}, failed{0};
  static Team& team = *new Team;  // its threads wait until the process ends
  team.run(threads, [&](Thread& thread) {
    for (uint64_t record; (record = next.fetch_add(1)) < count;) {
      if (!thread.read(request, record)) ++failed;
    }
  });
  return failed;
}
