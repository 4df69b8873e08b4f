#include <libdeflate.h>

#include <catch2/catch.hpp>
#include <random>

#include "iac/checksum.h"

using namespace iac;

TEST_CASE("crc32 is zlib's, of any length at any address") {
  CHECK(crc32(as_bytes("123456789", 9)) == 0xCBF43926);
  std::mt19937 random(1);
  std::vector<std::byte> data((1 << 20) + 7);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  size_t wrong = 0;
  for (size_t size = 0; size < 3000; ++size) {
    for (const size_t start : {0, 1, 7}) {
      const Bytes part = Bytes(data).subspan(start, size);
      wrong += crc32(part) != libdeflate_crc32(0, part.data(), part.size());
    }
  }
  CHECK(wrong == 0);
  CHECK(crc32(data) == libdeflate_crc32(0, data.data(), data.size()));
}
