#include "iac/dicom/rle.h"

#include <algorithm>
#include <string>

#include "iac/error.h"

namespace iac::dicom {
namespace {

// The number of segments and where up to 15 of them begin.
constexpr size_t header_bytes = 64, max_segments = 15;
// Two bytes repeat one up to 128 times.
constexpr uint64_t max_expansion = 64;

Error bad(const std::string& reason) { return {Error::Kind::codec, "RLE: " + reason}; }

// PackBits, to every `step`-th byte (G.3.2).
void decode_segment(Bytes segment, uint64_t pixels, std::byte* out, uint64_t step) {
  uint64_t done = 0, more = 0;
  for (size_t at = 0; at < segment.size();) {
    const auto head = static_cast<unsigned>(segment[at++]);
    if (head == 128) continue;
    const bool repeats = head > 128;
    const uint64_t there = repeats ? (at < segment.size() ? 257 - head : 0)
                                   : std::min<uint64_t>(head + 1, segment.size() - at);
    const uint64_t run = std::min(there, pixels - done);
    for (uint64_t i = 0; i < run; ++i) out[done++ * step] = segment[repeats ? at : at + i];
    more += there - run;
    at += repeats ? 1 : there;
  }
  // An odd number of bytes may have been padded before it was encoded.
  if (done == pixels && more <= 1) return;
  throw bad("a segment of " + std::to_string(done + more) + " bytes, the index table says " +
            std::to_string(pixels));
}

}  // namespace

void check_rle(Bytes frame, uint64_t pixels, uint64_t channels, uint64_t size) {
  if (frame.size() < header_bytes) throw bad("a frame shorter than its header");
  const auto segments = load<uint32_t>(frame.data());
  if (segments != channels * size || segments > max_segments) {
    throw bad("a frame of " + std::to_string(segments) + " segments, the index table says " +
              std::to_string(channels * size));
  }
  if (pixels > frame.size() * max_expansion) {
    throw bad(std::to_string(frame.size()) + " bytes cannot be " + std::to_string(pixels) +
              " pixels");
  }
}

void decode_rle(Bytes frame, uint64_t pixels, uint64_t channels, uint64_t size, std::byte* planes) {
  check_rle(frame, pixels, channels, size);
  const uint64_t segments = channels * size;
  const auto start = [&](uint64_t segment) -> uint64_t {
    if (segment == segments) return frame.size();
    return load<uint32_t>(frame.data() + 4 * (segment + 1));
  };
  for (uint64_t segment = 0; segment < segments; ++segment) {
    const uint64_t begin = start(segment), end = start(segment + 1);
    if (begin < header_bytes || begin > end || end > frame.size()) {
      throw bad("segment " + std::to_string(segment + 1) + " lies outside the frame");
    }
    // The most significant bytes of a channel come first (G.2).
    std::byte* const plane = planes + segment / size * pixels * size;
    decode_segment(frame.subspan(begin, end - begin), pixels, plane + (size - 1 - segment % size),
                   size);
  }
}

}  // namespace iac::dicom
