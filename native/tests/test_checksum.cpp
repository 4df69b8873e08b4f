#include <catch2/catch.hpp>
#include <string_view>

#include "iac/checksum.h"

using iac::as_bytes;
using iac::crc32;

TEST_CASE("crc32 is the one of zlib, in one piece or several") {
  const std::string_view check = "123456789";
  CHECK(crc32(as_bytes(check.data(), check.size())) == 0xCBF43926);
  CHECK(crc32({}) == 0);
  const uint32_t first = crc32(as_bytes(check.data(), 4));
  CHECK(crc32(as_bytes(check.data() + 4, 5), first) == 0xCBF43926);
}
