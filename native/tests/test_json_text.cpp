#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "iac/error.h"
#include "iac/json_text.h"

using iac::JsonText;

static std::string value(std::string_view text) {
  JsonText json(text);
  std::string found(json.value());
  json.finish();
  return found;
}

TEST_CASE("json text comes as it stands") {
  for (const char* text :
       {"{}", "[]", "\"\"", "null", "true", "false", "0", "-0.5e+10", "12E-3", "[1, [2], {}]",
        R"({"a" : [ null ], "b":"\"\\\/\b\f\n\r\t\u00e9\ud83e\ude7a"})", "\"\xC3\xA9\""}) {
    CHECK(value(text) == text);
    CHECK(value(" \n\t\r" + std::string(text) + " ") == text);
  }
}

TEST_CASE("json text is refused where it is none") {
  for (const char* text : {"",
                           " ",
                           "{",
                           "}",
                           "[1",
                           "[1,]",
                           "{,}",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "[1 2]",
                           "\"",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\ud800\\u0041\"",
                           "\"\\udc00\"",
                           "\"a\nb\"",
                           "01",
                           "-",
                           "+1",
                           ".5",
                           "1.",
                           "1e",
                           "NaN",
                           "nul",
                           "tru",
                           "Infinity",
                           "1 2",
                           "\"\xFF\""}) {
    INFO(text);
    CHECK_THROWS_AS(value(text), iac::Error);
  }
  CHECK_THROWS_AS(value(std::string_view("1\0", 2)), iac::Error);
}

TEST_CASE("json text is read no deeper than its bound") {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(value(nested(512)) == nested(512));
  CHECK_THROWS_WITH(value(nested(513)), Catch::Contains("nested too deeply"));
  CHECK_THROWS_AS(value(std::string(10'000'000, '[')), iac::Error);
}

TEST_CASE("json members and items are called one by one") {
  JsonText json(R"({"a": [1, "two", {}], "b\"": null})");
  std::vector<std::string> found;
  json.members([&](std::string_view key) {
    found.emplace_back(key);
    if (json.next() != '[') {
      found.emplace_back(json.value());
    } else {
      json.items([&] { found.emplace_back(json.value()); });
    }
  });
  json.finish();
  CHECK(found == std::vector<std::string>{"a", "1", "\"two\"", "{}", "b\\\"", "null"});
  CHECK(iac::unescaped("plain") == "plain");
  CHECK(iac::unescaped(R"(a\"\u00e9\n)") == "a\"\xC3\xA9\n");
}
