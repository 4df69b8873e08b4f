#include <catch2/catch.hpp>
#include <string_view>

#include "iac/utf8.h"

using iac::as_bytes;

static bool valid(std::string_view text) {
  return iac::is_utf8(as_bytes(text.data(), text.size()));
}

TEST_CASE("utf8 takes what RFC 3629 allows") {
  CHECK(valid(""));
  CHECK(valid("plain"));
  CHECK(valid("\xC3\xA9 \xE6\x97\xA5 \xF0\x9F\xA9\xBA \xF4\x8F\xBF\xBF"));
}

TEST_CASE("utf8 refuses overlong forms, surrogates, cut sequences and values past U+10FFFF") {
  for (const std::string_view text :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE6\x97", "\xF0\x9F\xA9", "a\xFF"}) {
    CHECK_FALSE(valid(text));
  }
}
