// Going from one marker segment of a JPEG stream to the next.
#pragma once

#include "iac/bytes.h"

namespace iac::jpeg {

namespace marker {
constexpr uint8_t tem = 0x01, sof0 = 0xC0, dht = 0xC4, jpg = 0xC8, dac = 0xCC, sof15 = 0xCF,
                  rst0 = 0xD0, rst7 = 0xD7, soi = 0xD8, eoi = 0xD9, sos = 0xDA, dqt = 0xDB,
                  dnl = 0xDC, dri = 0xDD, app0 = 0xE0, app14 = 0xEE, jpegls_frame = 0xF7;
}

inline uint8_t byte_at(Bytes bytes, size_t at) { return std::to_integer<uint8_t>(bytes[at]); }

inline uint32_t short_at(Bytes bytes, size_t at) {
  return uint32_t{byte_at(bytes, at)} << 8 | byte_at(bytes, at + 1);
}

struct Segment {
  uint8_t marker = 0;
  size_t at = 0;  // offset of the marker
  Bytes body;     // behind the length; empty for markers that stand alone
};

class Segments {
 public:
  Segments(Bytes stream, size_t position) : stream_(stream), position_(position) {}

  // Throws Error(codec) where there is none or it is cut.
  Segment next();

  // To the marker that ends a scan; restart markers do not.
  void skip_entropy_coded();

  size_t position() const { return position_; }
  bool at_end() const { return position_ == stream_.size(); }

 private:
  Bytes stream_;
  size_t position_;
};

}  // namespace iac::jpeg
