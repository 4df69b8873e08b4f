// The tables that TIFF files keep apart from their abbreviated JPEG streams.
#include "iac/base64.h"
#include "iac/codec/jpeg/segments.h"
#include "iac/codec/jpeg/stream.h"

namespace iac::jpeg {
namespace {

Error bad_tables(const std::string& reason) {
  return {Error::Kind::argument, "codec jpeg: tables_base64 " + reason};
}

bool is_table(uint8_t marker) {
  return marker == marker::dqt || marker == marker::dht || marker == marker::dac ||
         marker == marker::dri;
}

}  // namespace

Tables read_tables(const std::string& base64) {
  const auto bytes = from_base64(base64);
  if (!bytes) throw bad_tables("is not base64");
  const Bytes stream(*bytes);
  const bool has_soi =
      stream.size() >= 2 && byte_at(stream, 0) == 0xFF && byte_at(stream, 1) == marker::soi;
  Tables tables;
  Segments segments(stream, has_soi ? 2 : 0);
  try {
    while (!segments.at_end()) {
      const Segment segment = segments.next();
      if (segment.marker == marker::eoi) break;
      tables.defined.add(segment);
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
