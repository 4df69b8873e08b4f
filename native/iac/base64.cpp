#include "iac/base64.h"

#include <algorithm>
#include <cstdint>

namespace iac {

static int value_of(char digit) {
  if (digit >= 'A' && digit <= 'Z') return digit - 'A';
  if (digit >= 'a' && digit <= 'z') return digit - 'a' + 26;
  if (digit >= '0' && digit <= '9') return digit - '0' + 52;
  if (digit == '+') return 62;
  return digit == '/' ? 63 : -1;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t digits = std::min(text.find('='), text.size());
  const bool padded = text.find_first_not_of('=', digits) == std::string_view::npos;
  if (text.size() - digits > 2 || !padded) return std::nullopt;
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < digits; ++i) {
    const int value = value_of(text[i]);
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (i % 4 > 0) bytes.push_back(static_cast<std::byte>(bits >> (6 - 2 * (i % 4)) & 0xFF));
  }
  return bytes;
}

}  // namespace iac
