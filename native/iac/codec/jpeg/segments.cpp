#include "iac/codec/jpeg/segments.h"

#include "iac/codec/jpeg/stream.h"

namespace iac::jpeg {

Segment Segments::next() {
  Segment segment;
  segment.at = position_;
  if (at_end()) throw bad_stream("payload is cut");
  if (byte_at(stream_, position_) != 0xFF) throw bad_stream("there are bytes between two segments");
  while (!at_end() && byte_at(stream_, position_) == 0xFF) ++position_;  // one, and fill bytes
  if (at_end()) throw bad_stream("payload is cut");
  segment.marker = byte_at(stream_, position_++);
  if (segment.marker == marker::eoi || segment.marker == marker::tem) return segment;
  if (segment.marker < marker::sof0 || segment.marker == marker::soi ||
      (segment.marker >= marker::rst0 && segment.marker <= marker::rst7)) {
    throw bad_stream("a marker is out of place");
  }
  if (stream_.size() - position_ < 2) throw bad_stream("payload is cut");
  const size_t length = short_at(stream_, position_);
  if (length < 2) throw bad_stream("a segment has a wrong length");
  if (length > stream_.size() - position_) throw bad_stream("payload is cut");
  segment.body = stream_.subspan(position_ + 2, length - 2);
  position_ += length;
  return segment;
}

void Segments::skip_entropy_coded() {
  while (true) {
    const auto* from = stream_.data() + position_;
    const void* found = at_end() ? nullptr : std::memchr(from, 0xFF, stream_.size() - position_);
    if (found == nullptr) throw bad_stream("payload is cut");
    position_ += static_cast<const std::byte*>(found) - from;
    size_t after = position_;
    while (after < stream_.size() && byte_at(stream_, after) == 0xFF) ++after;
    if (after == stream_.size()) throw bad_stream("payload is cut");
    const uint8_t code = byte_at(stream_, after);
    if (code != 0 && !(code >= marker::rst0 && code <= marker::rst7)) return;
    position_ = after + 1;
  }
}

}  // namespace iac::jpeg
