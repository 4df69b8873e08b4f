#include <catch2/catch.hpp>
#include <string>

#include "iac/base64.h"

static std::string decoded(std::string_view text) {
  const auto bytes = iac::from_base64(text);
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "none";
}

TEST_CASE("base64 has the test vectors of RFC 4648") {
  CHECK(decoded("").empty());
  CHECK(decoded("Zg==") == "f");
  CHECK(decoded("Zm8=") == "fo");
  CHECK(decoded("Zm9v") == "foo");
  CHECK(decoded("Zm9vYmFy") == "foobar");
  CHECK(decoded("+/+/") == "\xFB\xFF\xBF");
}

TEST_CASE("base64 is refused where it is none") {
  for (const char* text : {"Z", "Zg", "Zg=", "Z===", "Zg==Zg==", "Zm9v====", "Z_9v", " Zm9v"}) {
    CHECK(decoded(text) == "none");
  }
}
