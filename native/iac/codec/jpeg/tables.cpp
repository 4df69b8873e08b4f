// The tables that TIFF files keep apart from their abbreviated JPEG streams.
#include <algorithm>

#include "iac/codec/jpeg/segments.h"
#include "iac/codec/jpeg/stream.h"

namespace iac::jpeg {
namespace {

Error bad_tables(const std::string& reason) {
  return {Error::Kind::argument, "codec jpeg: tables_base64 " + reason};
}

int value_of(char digit) {
  if (digit >= 'A' && digit <= 'Z') return digit - 'A';
  if (digit >= 'a' && digit <= 'z') return digit - 'a' + 26;
  if (digit >= '0' && digit <= '9') return digit - '0' + 52;
  if (digit == '+') return 62;
  return digit == '/' ? 63 : -1;
}

// RFC 4648, padded.
std::vector<std::byte> from_base64(const std::string& text) {
  std::vector<std::byte> bytes;
  if (text.size() % 4 != 0) throw bad_tables("is not base64");
  const size_t digits = std::min(text.find('='), text.size());
  if (text.size() - digits > 2 || text.find_first_not_of('=', digits) != std::string::npos) {
    throw bad_tables("is not base64");
  }
  uint32_t bits = 0;
  for (size_t i = 0; i < digits; ++i) {
    const int value = value_of(text[i]);
    if (value < 0) throw bad_tables("is not base64");
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (i % 4 > 0) bytes.push_back(static_cast<std::byte>(bits >> (6 - 2 * (i % 4)) & 0xFF));
  }
  return bytes;
}

bool is_table(uint8_t marker) {
  return marker == marker::dqt || marker == marker::dht || marker == marker::dac ||
         marker == marker::dri;
}

}  // namespace

Tables read_tables(const std::string& base64) {
  const std::vector<std::byte> bytes = from_base64(base64);
  const Bytes stream(bytes);
  const bool has_soi =
      stream.size() >= 2 && byte_at(stream, 0) == 0xFF && byte_at(stream, 1) == marker::soi;
  Tables tables;
  Segments segments(stream, has_soi ? 2 : 0);
  try {
    while (!segments.at_end()) {
      const Segment segment = segments.next();
      if (segment.marker == marker::eoi) break;
      if (segment.marker == marker::dht) {
        tables.largest_dc_symbol =
            std::max(tables.largest_dc_symbol, largest_dc_symbol(segment.body));
      }
      const Bytes whole = stream.subspan(segment.at, segments.position() - segment.at);
      if (is_table(segment.marker)) {
        tables.segments.insert(tables.segments.end(), whole.begin(), whole.end());
      } else if (segment.marker < marker::app0) {
        throw bad_stream("there is more than tables");
      }
    }
  } catch (const Error& error) {
    throw bad_tables("has no JPEG tables: " + error.reason());
  }
  return tables;
}

}  // namespace iac::jpeg
