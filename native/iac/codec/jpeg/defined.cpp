#include "iac/codec/jpeg/defined.h"

#include <algorithm>

#include "iac/codec/jpeg/stream.h"

namespace iac::jpeg {
namespace {

constexpr size_t huffman_header = 17;  // class and place, and how many codes have each length

// Whether there are codes of those lengths, none of them all ones (C.2).
bool is_code(Bytes lengths) {
  uint32_t used = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    used = used * 2 + byte_at(lengths, i);
    if (byte_at(lengths, i) > 0 && used >= uint32_t{2} << i) return false;
  }
  return true;
}

void mark(uint8_t& places, int place) { places = static_cast<uint8_t>(places | 1 << place); }

}  // namespace

void Defined::add(const Segment& segment) {
  switch (segment.marker) {
    case marker::dqt:
      return add_quantization(segment.body);
    case marker::dht:
      return add_huffman(segment.body);
    case marker::dri:
      if (segment.body.size() != 2) throw bad_stream("restart interval is damaged");
      return;
    default:
      return;
  }
}

void Defined::add_quantization(Bytes body) {
  while (!body.empty()) {
    const uint8_t which = byte_at(body, 0);  // precision, in bytes less one, and place
    const size_t size = 1 + 64 * ((which >> 4) + size_t{1});
    if (which >> 4 > 1 || (which & 15) > 3 || body.size() < size) {
      throw bad_stream("quantization table is damaged");
    }
    mark(quantization, which & 15);
    body = body.subspan(size);
  }
}

void Defined::add_huffman(Bytes body) {
  while (!body.empty()) {
    if (body.size() < huffman_header) throw bad_stream("Huffman table is damaged");
    const uint8_t which = byte_at(body, 0);  // class, 0 for DC, and place
    if (which >> 4 > 1 || (which & 15) > 3) throw bad_stream("Huffman table is damaged");
    const Bytes lengths = body.subspan(1, 16);
    size_t symbols = 0;
    for (size_t i = 0; i < lengths.size(); ++i) symbols += byte_at(lengths, i);
    if (symbols > 256 || body.size() < huffman_header + symbols || !is_code(lengths)) {
      throw bad_stream("Huffman table is damaged");
    }
    const bool is_dc = which >> 4 == 0;
    for (size_t i = 0; is_dc && i < symbols; ++i) {
      largest_dc_symbol = std::max<int>(largest_dc_symbol, byte_at(body, huffman_header + i));
    }
    mark(is_dc ? dc : ac, which & 15);
    body = body.subspan(huffman_header + symbols);
  }
}

}  // namespace iac::jpeg
