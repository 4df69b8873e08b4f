#include "iac/utf8.h"

namespace iac {

bool is_ascii(Bytes text) {
  constexpr uint64_t high_bits = 0x8080808080808080u;
  uint64_t seen = 0;
  size_t i = 0;
  for (; i + 32 <= text.size(); i += 32) {
    const std::byte* at = text.data() + i;
    seen |= load<uint64_t>(at) | load<uint64_t>(at + 8) | load<uint64_t>(at + 16) |
            load<uint64_t>(at + 24);
  }
  uint8_t tail = 0;
  for (; i < text.size(); ++i) tail |= static_cast<uint8_t>(text[i]);
  return (seen & high_bits) == 0 && (tail & 0x80) == 0;
}

bool is_utf8(Bytes text) {
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  const auto* const end = at + text.size();
  while (at < end) {
    if (*at < 0x80) {
      ++at;
      continue;
    }
    const uint8_t lead = *at++;
    // The second byte's range shuts out overlong forms, surrogates and values past U+10FFFF.
    uint8_t low = 0x80, high = 0xBF;
    int more;
    if (lead >= 0xC2 && lead <= 0xDF) {
      more = 1;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      more = 2;
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      more = 3;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    } else {
      return false;
    }
    for (; more > 0; --more, low = 0x80, high = 0xBF) {
      if (at == end || *at < low || *at > high) return false;
      ++at;
    }
  }
  return true;
}

}  // namespace iac
