#include "iac/codec/jpeg/stream.h"

#include <algorithm>

#include "iac/codec/jpeg/scans.h"

namespace iac::jpeg {
namespace {

std::string name_of_frame(uint8_t marker) { return "SOF" + std::to_string(marker - marker::sof0); }

// Frames with other processes are hierarchical, or lossless with arithmetic coding: no library
// decodes them.
void read_process(uint8_t marker, Header& header) {
  switch (marker - marker::sof0) {
    case 0:
    case 1:
      return;
    case 2:
      header.process = Process::progressive;
      return;
    case 3:
      header.process = Process::lossless;
      return;
    case 9:
      header.arithmetic = true;
      return;
    case 10:
      header.process = Process::progressive;
      header.arithmetic = true;
      return;
    default:
      throw bad_stream("process " + name_of_frame(marker) + " is not supported");
  }
}

void check_precision(const Header& header) {
  const int bits = header.precision;
  const bool known =
      header.process == Process::lossless ? bits >= 2 && bits <= 16 : bits == 8 || bits == 12;
  if (!known) throw bad_stream("impossible precision of " + std::to_string(bits) + " bits");
  if (header.arithmetic && bits == 12) {
    throw bad_stream("12 bits with arithmetic coding are not supported");
  }
}

uint64_t ceiling(uint64_t value, uint64_t divisor) { return (value + divisor - 1) / divisor; }

// A Huffman code has at least one bit. Sequential blocks have two codes, a progressive block one
// in the first scan, a lossless sample one.
void check_size(const Header& header, size_t available) {
  if (header.arithmetic) return;
  const uint64_t side = header.process == Process::lossless ? 1 : 8;
  uint64_t horizontal = 1, vertical = 1, units = 0;
  for (size_t i = 0; i < header.count; ++i) {
    horizontal = std::max<uint64_t>(horizontal, header.components[i].horizontal);
    vertical = std::max<uint64_t>(vertical, header.components[i].vertical);
  }
  for (size_t i = 0; i < header.count; ++i) {
    const Component& component = header.components[i];
    units += ceiling(uint64_t{header.width} * component.horizontal, horizontal * side) *
             ceiling(uint64_t{header.height} * component.vertical, vertical * side);
  }
  const uint64_t bits = header.process == Process::sequential ? units * 2 : units;
  if (bits / 8 > available) throw bad_stream("header claims more pixels than the payload can hold");
}

void read_frame(uint8_t marker, Bytes body, Header& header) {
  read_process(marker, header);
  if (body.size() < 6 || body.size() != 6 + 3 * size_t{byte_at(body, 5)}) {
    throw bad_stream("frame header has a wrong length");
  }
  header.precision = byte_at(body, 0);
  header.height = short_at(body, 1);
  header.width = short_at(body, 3);
  header.count = byte_at(body, 5);
  if (header.height == 0 && header.width > 0) {
    throw bad_stream("the height is left to a DNL marker, which is not supported");
  }
  if (header.height == 0 || header.width == 0) throw bad_stream("image has no pixels");
  if (header.height > max_side || header.width > max_side) {
    throw bad_stream("image is more than " + std::to_string(max_side) + " pixels high or wide");
  }
  // What RGB a CMYK image stands for depends on its inks.
  if (header.count == 4) throw bad_stream("CMYK images are not supported");
  if (header.count != 1 && header.count != 3) {
    throw bad_stream("images of " + std::to_string(header.count) + " components are not supported");
  }
  check_precision(header);
  for (size_t i = 0; i < header.count; ++i) {
    Component& component = header.components[i];
    component.id = byte_at(body, 6 + 3 * i);
    component.horizontal = byte_at(body, 7 + 3 * i) >> 4;
    component.vertical = byte_at(body, 7 + 3 * i) & 15;
    component.quantization = byte_at(body, 8 + 3 * i);
    for (size_t j = 0; j < i; ++j) {
      if (header.components[j].id == component.id) throw bad_stream("two components are the same");
    }
    const int factors[]{component.horizontal, component.vertical};
    for (const int factor : factors) {
      if (factor < 1 || factor > 4) throw bad_stream("impossible subsampling");
      if (header.process == Process::lossless && header.count > 1 && factor != 1) {
        throw bad_stream("subsampling without loss is not supported");
      }
    }
  }
}

void read_application(uint8_t marker, Bytes body, Header& header) {
  const auto starts_with = [&](std::string_view text) {
    return body.size() >= text.size() && std::memcmp(body.data(), text.data(), text.size()) == 0;
  };
  if (marker == marker::app0 && body.size() >= 14 && starts_with({"JFIF\0", 5})) header.jfif = true;
  if (marker == marker::app14 && body.size() >= 12 && starts_with("Adobe")) {
    header.adobe_transform = byte_at(body, 11);
  }
}

bool is_frame(uint8_t marker) {
  return marker >= marker::sof0 && marker <= marker::sof15 && marker != marker::dht &&
         marker != marker::jpg && marker != marker::dac;
}

}  // namespace

Error bad_stream(const std::string& reason) { return {Error::Kind::codec, "jpeg: " + reason}; }

ImageShape Header::shape() const {
  return {height, width, static_cast<uint32_t>(count),
          precision <= 8 ? PixelType::uint8 : PixelType::uint16};
}

Header read_header(Bytes stream) {
  if (stream.size() < 2 || byte_at(stream, 0) != 0xFF || byte_at(stream, 1) != marker::soi) {
    throw bad_stream("payload is not a JPEG stream");
  }
  Header header;
  Segments segments(stream, 2);
  while (true) {
    const Segment segment = segments.next();
    if (segment.marker == marker::sos) {
      if (header.count == 0) throw bad_stream("there is no frame header before the first scan");
      header.first_scan = segment.at;
      check_size(header, stream.size() - segment.at);
      return header;
    }
    if (segment.marker == marker::eoi) throw bad_stream("payload has tables, but no image");
    if (segment.marker == marker::jpegls_frame) throw bad_stream("payload is a JPEG-LS stream");
    if (is_frame(segment.marker)) {
      if (header.count > 0) throw bad_stream("payload has two frames");
      read_frame(segment.marker, segment.body, header);
    } else {
      read_application(segment.marker, segment.body, header);
    }
  }
}

size_t check_scans(Bytes stream, const Header& header, const Tables& tables) {
  Defined defined = tables.defined;
  // libjpeg-turbo takes the Huffman tables of Annex K where there are none.
  if (header.process == Process::sequential && header.precision == 8) {
    defined.dc |= 3;
    defined.ac |= 3;
  }
  Scans scans(header);
  Segments segments(stream, 2);
  while (true) {
    const Segment segment = segments.next();
    if (segment.marker == marker::eoi) break;
    if (segment.marker == marker::sos) {
      scans.add(segment.body, defined);
      segments.skip_entropy_coded();
    } else if (segment.marker == marker::dnl) {
      if (segment.body.size() != 2 || short_at(segment.body, 0) != header.height) {
        throw bad_stream("a DNL marker changes the height");
      }
    } else if (is_frame(segment.marker)) {
      if (segment.at > header.first_scan) throw bad_stream("payload has two frames");
    } else {
      defined.add(segment);
    }
  }
  if (!scans.complete()) throw bad_stream("a component has no scan");
  // GDCM's decoder looks the symbol up in a table of that many entries.
  if (defined.largest_dc_symbol > (header.process == Process::lossless ? 16 : 15)) {
    throw bad_stream("Huffman table is damaged");
  }
  return segments.position();
}

}  // namespace iac::jpeg
