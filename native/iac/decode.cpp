#include "iac/decode.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "iac/interrupt.h"
#include "iac/platform.h"
#include "iac/scratch.h"
#include "iac/workers.h"

namespace iac {
namespace {

constexpr uint64_t not_yet = UINT64_MAX;
// Payload bytes handed to a thread at a time, and the most records in them.
constexpr uint64_t chunk_bytes = 64 << 10;
constexpr size_t max_chunk_rows = 64;
// Small payloads may take long to decode, so that a small batch is spread over all threads.
constexpr size_t min_chunks_a_thread = 8;
// With fewer chunks a thread it does not pay to find out whether all records have one size.
constexpr size_t min_chunks_to_try = 8;
// How often a waiting thread looks again, about a millisecond in all, before it goes to sleep.
constexpr int yields = 2000;

Error too_many_samples(const ImageShape& image, const DecodeLimits& limits) {
  return {Error::Kind::codec, "image of " + describe(image) + " is larger than the limit of " +
                                  std::to_string(limits.image_samples) + " samples, raise " +
                                  limits.image_samples_option + " to read it"};
}

}  // namespace

Error too_large(const DecodeLimits& limits) {
  return {Error::Kind::codec, "decoded record is larger than the limit of " +
                                  std::to_string(limits.record_bytes) + " bytes, raise " +
                                  limits.record_bytes_option + " to read it"};
}

// One call of add(). Payloads are decoded in chunks. Where a chunk's start in the result is known,
// because all sizes before it are, it is decoded in place; otherwise into the thread's scratch
// memory and copied once the chunk before it is done. Chunks start in rising order and the lowest
// unfinished one never waits, so none waits for ever.
class BatchDecoder::Round {
 public:
  Round(BatchDecoder& batch, std::span<const Bytes> payloads, std::span<const Codec* const> codecs,
        size_t first, Failures& failures)
      : batch_(batch),
        payloads_(payloads),
        codecs_(codecs),
        first_(first),
        failures_(failures),
        hints_(payloads.size()),
        lengths_(payloads.size(), 0),
        holes_(payloads.size(), 0) {
    for (const Bytes payload : payloads) payload_bytes_ += payload.size();
    const uint64_t average = payload_bytes_ / payloads.size() + 1;
    const size_t spread =
        payloads.size() / (worker_count(batch.workers_, payloads.size()) * min_chunks_a_thread);
    chunk_rows_ = std::clamp<size_t>(std::min(chunk_bytes / average, spread), 1, max_chunk_rows);
    chunks_ = (payloads.size() + chunk_rows_ - 1) / chunk_rows_;
    ends_ = std::vector<std::atomic<uint64_t>>(chunks_ + 1);
  }

  void run() {
    const unsigned workers = worker_count(batch_.workers_, chunks_);
    parallel_for(chunks_, workers, [&](size_t chunk) { measure(chunk); });
    reserve();
    publish_known_ends();
    if (!decode_as_equal(workers)) {
      parallel_for(chunks_, workers, [&](size_t chunk) { decode(chunk); });
      if (error_) std::rethrow_exception(error_);
    }
    if (!deferred_.empty()) place_deferred();
    if (has_holes_) close_holes();
    for (const uint64_t length : lengths_) batch_.used_ += length;
    check_batch(batch_.used_);
    batch_.payload_bytes_ += payload_bytes_;
    batch_.lengths_.insert(batch_.lengths_.end(), lengths_.begin(), lengths_.end());
    for (const SizeHint& hint : hints_) batch_.images_.push_back(hint.image);
  }

 private:
  struct Deferred {  // decoded records for which there was no room yet
    uint64_t place;
    std::vector<std::byte> bytes;
  };

  const Codec& codec(size_t row) const { return *codecs_[codecs_.size() == 1 ? 0 : row]; }
  size_t begin(size_t chunk) const { return chunk * chunk_rows_; }
  size_t end(size_t chunk) const { return std::min(begin(chunk + 1), payloads_.size()); }
  uint64_t limit() const { return batch_.limits_.record_bytes; }

  void check_batch(uint64_t bytes) const {
    if (bytes <= batch_.limits_.batch_bytes) return;
    throw Error(Error::Kind::argument,
                "decoded batch is larger than the limit of " +
                    std::to_string(batch_.limits_.batch_bytes) +
                    " bytes, ask for fewer rows at a time or raise max_batch_bytes");
  }

  // What each payload says of its size.
  void measure(size_t chunk) {
    for (size_t i = begin(chunk); i < end(chunk); ++i) {
      if (failures_.at(first_ + i)) continue;
      try {
        hints_[i] = codec(i).decoded_size(payloads_[i]);
        if (hints_[i].kind == SizeHint::Kind::exact && hints_[i].bytes > limit()) {
          throw too_large(batch_.limits_);
        }
        const ImageShape& image = hints_[i].image;
        if (image.samples() > batch_.limits_.image_samples) {
          throw too_many_samples(image, batch_.limits_);
        }
      } catch (const Error& error) {
        hints_[i] = {};
        failures_.add(first_ + i, error);
      }
    }
  }

  // Memory for this round and, in proportion, for those to come. Bounds and guesses cost address
  // space only, pages that are not written are not committed.
  void reserve() {
    uint64_t sum = 0, exact = 0;
    for (size_t i = 0; i < payloads_.size(); ++i) {
      if (failures_.at(first_ + i)) continue;
      const SizeHint hint = hints_[i];
      if (hint.kind == SizeHint::Kind::exact) exact += hint.bytes;
      sum += hint.kind == SizeHint::Kind::unknown
                 ? std::max<uint64_t>(payloads_[i].size() * 16, 4096)
                 : std::min(hint.bytes, limit());
    }
    check_batch(batch_.used_ + exact);
    sum = std::min(sum, batch_.limits_.batch_bytes - batch_.used_);
    uint64_t rest = 0;
    const uint64_t after = batch_.payload_bytes_ + payload_bytes_;
    if (after < batch_.total_payload_bytes_) {
      const double ratio = static_cast<double>(sum) / static_cast<double>(payload_bytes_ + 1);
      const double guess = ratio * 1.1 * static_cast<double>(batch_.total_payload_bytes_ - after);
      const uint64_t most = batch_.limits_.batch_bytes - batch_.used_ - sum;
      rest = guess < static_cast<double>(most) ? static_cast<uint64_t>(guess) : most;
    }
    batch_.reserve(batch_.used_ + sum, rest, batch_.used_);
  }

  void publish_known_ends() {
    for (auto& end : ends_) end.store(not_yet, std::memory_order_relaxed);
    uint64_t place = batch_.used_;
    ends_[0] = place;
    for (size_t c = 0; c < chunks_; ++c) {
      for (size_t i = begin(c); i < end(c); ++i) {
        if (failures_.at(first_ + i)) continue;
        if (hints_[i].kind != SizeHint::Kind::exact) return;
        place += hints_[i].bytes;
      }
      ends_[c + 1] = place;
    }
  }

  // Payloads that do not tell their sizes often all have the same. As long as that holds they are
  // decoded in place by all threads; the first that is different or fails ends it, for the whole
  // batch, and this round starts again.
  bool decode_as_equal(unsigned workers) {
    const bool may_be = batch_.equal_sizes_ && ends_[chunks_] == not_yet;
    if (!may_be || workers == 1 || chunks_ < workers * min_chunks_to_try) return false;
    batch_.equal_sizes_ = false;
    const uint64_t room = batch_.out_.capacity() - batch_.used_;
    uint64_t size;
    if (batch_.lengths_.empty()) {
      Target target(batch_.out_.data() + batch_.used_, std::min(room, limit()));
      const auto first = decode_row(0, target, true);
      if (!first.has_value()) return false;
      size = *first;
    } else {
      size = batch_.lengths_.back();
    }
    if (size > room / payloads_.size()) return false;

    std::atomic<bool> equal{true};
    parallel_for(chunks_, workers, [&](size_t chunk) {
      check_interrupt();
      for (size_t row = begin(chunk); row < end(chunk) && equal; ++row) {
        if (!decodes_to(row, size)) equal = false;
      }
    });
    if (!equal) return false;
    std::fill(lengths_.begin(), lengths_.end(), size);
    batch_.equal_sizes_ = true;
    return true;
  }

  bool decodes_to(size_t row, uint64_t size) const {
    if (failures_.at(first_ + row)) return false;
    Target target(batch_.out_.data() + batch_.used_ + row * size, size);
    try {
      return codec(row).decode(payloads_[row], target) == size;
    } catch (const Error&) {
      return false;
    }
  }

  // An error of the whole batch does not leave here: a chunk that was not decoded for it, or whose
  // end nobody told, would be waited for by the ones behind.
  void decode(size_t chunk) {
    try {
      check_interrupt();
      decode_rows(chunk);
    } catch (...) {
      abandon();
    }
    if (ends_[chunk + 1].load(std::memory_order_relaxed) == not_yet) tell_end(chunk, 0);
  }

  void abandon() {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
    abandoned_ = true;
  }

  // The thread before is mostly about to be done: going to sleep and being woken takes longer.
  uint64_t wait_for_end_before(size_t chunk) const {
    const std::atomic<uint64_t>& end = ends_[chunk];
    for (int i = 0; i < yields && end.load(std::memory_order_acquire) == not_yet; ++i) {
      std::this_thread::yield();
    }
    end.wait(not_yet, std::memory_order_acquire);
    return end.load(std::memory_order_acquire);
  }

  void tell_end(size_t chunk, uint64_t end) {
    ends_[chunk + 1].store(end, std::memory_order_release);
    ends_[chunk + 1].notify_all();
  }

  void decode_rows(size_t chunk) {
    thread_local Scratch scratch;
    scratch.restart();
    uint64_t place = ends_[chunk].load(std::memory_order_acquire);
    if (abandoned_) return;
    const bool end_is_known = ends_[chunk + 1].load(std::memory_order_relaxed) != not_yet;
    size_t row = begin(chunk);
    if (place != not_yet) row = decode_in_place(row, end(chunk), end_is_known, place);
    for (; row < end(chunk); ++row) {
      lengths_[row] = decode_aside(row, scratch);
      scratch.advance(lengths_[row]);
    }
    if (place == not_yet) {
      place = wait_for_end_before(chunk);
      if (abandoned_) return;
    }
    const Bytes late = scratch.written();
    if (!end_is_known) tell_end(chunk, place + late.size());
    if (place + late.size() > batch_.out_.capacity()) {
      if (!late.empty()) defer(place, late);
    } else if (!late.empty()) {
      std::memcpy(batch_.out_.data() + place, late.data(), late.size());
    }
    scratch.release_if_large();
  }

  // Decodes rows one behind the other from `place` on, which moves along, until one finds no room:
  // the row to go on with. Where the chunk's end is known, other threads write behind it: a row
  // gets its exact room, for decoders scribble past their output, and a failed one leaves a hole.
  size_t decode_in_place(size_t row, size_t last, bool end_is_known, uint64_t& place) {
    for (; row < last; ++row) {
      if (place > batch_.out_.capacity()) return row;
      const uint64_t room = end_is_known ? hints_[row].bytes : batch_.out_.capacity() - place;
      Target target(batch_.out_.data() + place, std::min(room, limit()));
      const auto length = decode_row(row, target, !end_is_known && room < limit());
      if (!length.has_value() && !failures_.at(first_ + row)) return row;
      lengths_[row] = length.value_or(0);
      if (end_is_known && lengths_[row] < hints_[row].bytes) {
        holes_[row] = hints_[row].bytes - lengths_[row];
        has_holes_ = true;
      }
      place += lengths_[row] + holes_[row];
    }
    return row;
  }

  // Decodes a row to scratch memory, of which all threads together take no more than the batch may.
  uint64_t decode_aside(size_t row, Scratch& scratch) {
    const uint64_t taken = batch_.used_ + aside_.load(std::memory_order_relaxed);
    const uint64_t left = batch_.limits_.batch_bytes - std::min(taken, batch_.limits_.batch_bytes);
    scratch.limit_record(std::min(limit(), left));
    const auto length = decode_row(row, scratch, true);
    if (length.has_value()) {
      aside_ += *length;
    } else if (!failures_.at(first_ + row)) {
      if (left < limit()) check_batch(UINT64_MAX);
      failures_.add(first_ + row, too_large(batch_.limits_));
    }
    return length.value_or(0);
  }

  // The decoded length. Nothing when the row failed, or when the target was too small and
  // `may_retry`.
  std::optional<uint64_t> decode_row(size_t row, Target& target, bool may_retry = false) {
    if (failures_.at(first_ + row)) return std::nullopt;
    try {
      // A bound above the limit may still belong to a small record.
      if (hints_[row].kind == SizeHint::Kind::bound) {
        target.grow(std::min(hints_[row].bytes, limit()));
      }
      const auto length = codec(row).decode(payloads_[row], target);
      if (length.has_value() || may_retry) return length;
      throw too_large(batch_.limits_);
    } catch (const Error& error) {
      failures_.add(first_ + row, error);
      return std::nullopt;
    }
  }

  void defer(uint64_t place, Bytes bytes) {
    const std::lock_guard lock(mutex_);
    check_batch(place + bytes.size());
    deferred_.push_back({place, {bytes.begin(), bytes.end()}});
  }

  void place_deferred() {
    const uint64_t end = ends_[chunks_];
    batch_.reserve(end, 0, std::min(end, batch_.out_.capacity()));
    for (const Deferred& late : deferred_) {
      std::memcpy(batch_.out_.data() + late.place, late.bytes.data(), late.bytes.size());
    }
  }

  void close_holes() {
    uint64_t from = batch_.used_, to = batch_.used_;
    for (size_t i = 0; i < payloads_.size(); ++i) {
      if (from != to) std::memmove(batch_.out_.data() + to, batch_.out_.data() + from, lengths_[i]);
      to += lengths_[i];
      from += lengths_[i] + holes_[i];
    }
  }

  BatchDecoder& batch_;
  std::span<const Bytes> payloads_;
  std::span<const Codec* const> codecs_;
  size_t first_;
  Failures& failures_;
  std::vector<SizeHint> hints_;
  std::vector<uint64_t> lengths_;
  std::vector<uint64_t> holes_;  // room left unused behind a row
  uint64_t payload_bytes_ = 0;
  size_t chunk_rows_ = 1, chunks_ = 0;
  std::vector<std::atomic<uint64_t>> ends_;
  std::atomic<uint64_t> aside_{0};  // bytes decoded to scratch memory
  std::atomic<bool> has_holes_{false};
  std::atomic<bool> abandoned_{false};
  std::mutex mutex_;  // of the two below
  std::vector<Deferred> deferred_;
  std::exception_ptr error_;
};

BatchDecoder::BatchDecoder(DecodeLimits limits, unsigned workers, uint64_t total_payload_bytes)
    : limits_(limits), workers_(workers), total_payload_bytes_(total_payload_bytes) {
  if (limits_.batch_bytes == 0) limits_.batch_bytes = platform::physical_memory();
}

void BatchDecoder::add(std::span<const Bytes> payloads, std::span<const Codec* const> codecs,
                       size_t first, Failures& failures) {
  if (!payloads.empty()) Round(*this, payloads, codecs, first, failures).run();
}

void BatchDecoder::reserve(uint64_t needed, uint64_t hoped, uint64_t keep) {
  if (needed <= out_.capacity()) return;
  Buffer larger;
  try {
    larger = Buffer::allocate(needed + hoped);
  } catch (const std::bad_alloc&) {
    larger = Buffer::allocate(needed);
  }
  if (keep > 0) std::memcpy(larger.data(), out_.data(), keep);
  out_ = std::move(larger);
}

void BatchDecoder::keep(Bytes (*part)(Bytes), Failures& failures) {
  keep_parts({out_.data(), used_}, lengths_, part, failures);
}

Batch BatchDecoder::finish(OnError rule, Failures& failures) {
  return failures.finish(rule, std::move(out_), lengths_, std::move(images_));
}

}  // namespace iac
