#include <brotli/encode.h>
#include <zstd.h>

#include <catch2/catch.hpp>

#include "iac/codec/codec.h"
#include "iac/scratch.h"
#include "tests/frames.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

namespace {

std::optional<std::string> decoded(const Codec& codec, std::string_view payload,
                                   uint64_t limit = uint64_t{1} << 30) {
  Scratch scratch;
  scratch.restart();
  scratch.limit_record(limit);
  // A bound is made room for before, as far as the limit goes.
  scratch.grow(std::min(codec.decoded_size(bytes_of(payload)).bytes, limit));
  const auto size = codec.decode(bytes_of(payload), scratch);
  if (!size.has_value()) return std::nullopt;
  return text_of({scratch.data(), *size});
}

// Decoding into a place that cannot grow, with a guard behind it.
std::optional<std::string> decoded_in_place(const Codec& codec, std::string_view payload,
                                            size_t room) {
  std::string memory(room + 64, '\x5A');
  Target target(reinterpret_cast<std::byte*>(memory.data()), room);
  const auto size = codec.decode(bytes_of(payload), target);
  REQUIRE(memory.substr(room) == std::string(64, '\x5A'));
  if (!size.has_value()) return std::nullopt;
  REQUIRE(*size <= room);
  return memory.substr(0, *size);
}

std::string refusal(const std::string& name, const std::string& params) {
  const Thrown thrown = thrown_by([&] { make_codec(name, params); });
  return thrown.kind == Error::Kind::argument || thrown.kind == Error::Kind::codec ? thrown.text
                                                                                   : "";
}

std::vector<std::string> objects() {
  std::mt19937_64 random(1);
  std::vector<std::string> all{"", "a", std::string(100, 'x'), std::string(1 << 20, '\0')};
  for (const size_t size : {1, 7, 1000, 65536, 131072, 131073, 400000})
    all.push_back(noise(random, size));
  return all;
}

}  // namespace

TEST_CASE("an unknown codec is an error that names those there are") {
  for (const char* name : {"raw", "ZSTD", "zstandard", "", "None"}) {
    const Thrown thrown = thrown_by([&] { make_codec(name, "{}"); });
    CHECK(thrown.kind == Error::Kind::codec);
    CHECK(contains(thrown.text,
                   "unknown codec: '" + std::string(name) + "', this build has none, zstd"));
    CHECK(thrown_by([&] { make_decoder(name, "{}"); }).kind == Error::Kind::codec);
  }
}

TEST_CASE("parameters have defaults and are given back for the header") {
  CHECK(make_codec("none", "{}")->parameters().empty());
  CHECK(make_codec("zstd", "{}")->parameters() == "{\"level\": 19}");
  CHECK(make_codec("zstd", "{\"level\": -5}")->parameters() == "{\"level\": -5}");
  CHECK(make_codec("brotli", "{}")->parameters() == "{\"quality\": 11, \"lgwin\": 24}");
  CHECK(make_codec("brotli", "{\"quality\": 0, \"lgwin\": 10}")->parameters() ==
        "{\"quality\": 0, \"lgwin\": 10}");
}

TEST_CASE("unknown, mistyped and impossible parameters are errors that name them") {
  CHECK(contains(refusal("none", "{\"level\": 1}"), "codec none: unknown parameter 'level'"));
  CHECK(contains(refusal("zstd", "{\"quality\": 1}"), "codec zstd: unknown parameter 'quality'"));
  for (const char* value : {"\"3\"", "3.0", "true", "null", "23", "-131073", "[1]",
                            "18446744073709551615", "-9223372036854775808", "4294967296"}) {
    CHECK(contains(refusal("zstd", "{\"level\": " + std::string(value) + "}"),
                   "level is " + std::string(value) + ", expected an integer from -131072 to 22"));
  }
  CHECK(contains(refusal("brotli", "{\"quality\": 12}"),
                 "quality is 12, expected an integer from 0 to 11"));
  CHECK(contains(refusal("brotli", "{\"quality\": -1}"), "quality is -1"));
  CHECK(contains(refusal("brotli", "{\"lgwin\": 9}"),
                 "lgwin is 9, expected an integer from 10 to 24"));
  CHECK(contains(refusal("brotli", "{\"lgwin\": 25}"), "lgwin is 25"));
  for (const char* text : {"", "[]", "1", "{", "null"}) {
    CHECK(contains(refusal("zstd", text), "not a JSON object"));
  }
}

TEST_CASE("decoding takes whatever parameters a header has") {
  for (const char* params : {"{}", "{\"level\": \"high\"}", "{\"mode\": 1}", "[]", "nonsense"}) {
    CHECK_NOTHROW(make_decoder("zstd", params));
    CHECK_NOTHROW(make_decoder("brotli", params));
    CHECK_NOTHROW(make_decoder("none", params));
  }
}

TEST_CASE("impossible parameters of what is stored are errors of its codec") {
  for (const char* params : {"{\"tables_base64\": \"?\"}", "{\"tables_base64\": 5}",
                             "{\"encoded_color_space\": \"CMYK\"}", "[]"}) {
    CHECK(thrown_by([&] { make_decoder("jpeg", params); }).kind == Error::Kind::codec);
    CHECK(thrown_by([&] { make_codec("jpeg", params); }).kind == Error::Kind::argument);
  }
}

TEST_CASE("what is encoded decodes to itself") {
  for (const auto& [name, params] : {std::pair{"none", "{}"},
                                     {"zstd", "{\"level\": 3}"},
                                     {"zstd", "{\"level\": -7}"},
                                     {"brotli", "{\"quality\": 5, \"lgwin\": 22}"},
                                     {"brotli", "{\"quality\": 0, \"lgwin\": 10}"}}) {
    const auto codec = make_codec(name, params);
    for (const std::string& object : objects()) {
      const std::string payload = encoded(*codec, object);
      REQUIRE(decoded(*codec, payload) == object);
      // Just enough room, room to spare, and one byte too little.
      REQUIRE(decoded_in_place(*codec, payload, object.size()) == object);
      REQUIRE(decoded_in_place(*codec, payload, object.size() + 1000) == object);
      if (!object.empty())
        REQUIRE_FALSE(decoded_in_place(*codec, payload, object.size() - 1).has_value());
      const SizeHint hint = codec->decoded_size(bytes_of(payload));
      if (hint.kind == SizeHint::Kind::exact) REQUIRE(hint.bytes == object.size());
    }
  }
  for (const std::string& object : {std::string(), std::string("short"), std::string(50000, 'z')}) {
    CHECK(decoded(*make_codec("zstd", "{}"), encoded(*make_codec("zstd", "{}"), object)) == object);
    CHECK(decoded(*make_codec("brotli", "{}"), encoded(*make_codec("brotli", "{}"), object)) ==
          object);
  }
}

TEST_CASE("encoding appends and is the same each time") {
  const auto codec = make_codec("zstd", "{}");
  std::vector<std::byte> out;
  byte_codec(*codec).encode(bytes_of("one"), out);
  const std::vector<std::byte> first = out;
  byte_codec(*codec).encode(bytes_of("two"), out);
  CHECK(std::equal(first.begin(), first.end(), out.begin()));
  CHECK(text_of(std::span(out).subspan(first.size())) == encoded(*codec, "two"));
  // Another level between does not change what this one gives.
  const std::string before = encoded(*codec, std::string(1000, 'a') + "b");
  encoded(*make_codec("zstd", "{\"level\": 1}"), "x");
  CHECK(encoded(*codec, std::string(1000, 'a') + "b") == before);
}

TEST_CASE("zstd frames without content size decode, with a bound for their size") {
  const auto codec = make_codec("zstd", "{}");
  for (const std::string& object : objects()) {
    if (object.empty()) continue;
    const std::string payload = frame_without_size(object);
    const SizeHint hint = codec->decoded_size(bytes_of(payload));
    REQUIRE(hint.kind == SizeHint::Kind::bound);
    REQUIRE(hint.bytes >= object.size());
    REQUIRE(decoded(*codec, payload) == object);
    REQUIRE(decoded_in_place(*codec, payload, object.size()) == object);
    REQUIRE_FALSE(decoded_in_place(*codec, payload, object.size() - 1).has_value());
    REQUIRE(decoded(*codec, payload, object.size()) == object);
  }
}

TEST_CASE("zstd frames one behind the other decode to all of them") {
  const auto codec = make_codec("zstd", "{}");
  const std::string known = encoded(*codec, "known"), unknown = frame_without_size("unknown size");
  const std::string skippable("\x50\x2A\x4D\x18\x03\0\0\0abc", 11);
  CHECK(decoded(*codec, known + known) == "knownknown");
  CHECK(decoded(*codec, known + unknown + known) == "knownunknown sizeknown");
  CHECK(decoded(*codec, skippable + known + skippable) == "known");
  CHECK(codec->decoded_size(bytes_of(known + known)).bytes == 10);
  CHECK(thrown_by([&] { decoded(*codec, known + "junk"); }).kind == Error::Kind::codec);
}

TEST_CASE("brotli passes over what follows its stream") {
  const auto codec = make_codec("brotli", "{}");
  CHECK(decoded(*codec, encoded(*codec, "object") + "junk") == "object");
}

TEST_CASE("empty payloads are errors but where they are the object") {
  CHECK(decoded(*make_codec("none", "{}"), "") == "");
  for (const char* name : {"zstd", "brotli"}) {
    const Thrown thrown = thrown_by([&] { decoded(*make_codec(name, "{}"), ""); });
    CHECK(thrown.kind == Error::Kind::codec);
    CHECK(contains(thrown.text, std::string(name) + ": empty payload"));
  }
}

TEST_CASE("payloads cut anywhere are errors") {
  std::mt19937_64 random(2);
  const std::string object = noise(random, 300) + std::string(3000, 'r') + noise(random, 300);
  const std::string zstd = encoded(*make_codec("zstd", "{}"), object);
  const std::string brotli = encoded(*make_codec("brotli", "{}"), object);
  for (const auto& [name, payload] :
       {std::pair{"zstd", zstd}, {"zstd", frame_without_size(object)}, {"brotli", brotli}}) {
    const auto codec = make_codec(name, "{}");
    for (size_t size = 0; size < payload.size(); ++size) {
      const Thrown thrown =
          thrown_by([&, &whole = payload] { decoded(*codec, whole.substr(0, size)); });
      REQUIRE(thrown.any);
      REQUIRE(thrown.kind == Error::Kind::codec);
    }
  }
}

TEST_CASE("junk and damage are errors or other bytes, within the room given") {
  std::mt19937_64 random(3);
  const std::string object = std::string(2000, 'r') + noise(random, 500);
  for (const char* name : {"zstd", "brotli"}) {
    const auto codec = make_codec(name, "{}");
    const std::string payload =
        name == std::string("zstd") ? frame_without_size(object) : encoded(*codec, object);
    for (int i = 0; i < 3000; ++i) {
      std::string bad = i % 3 == 0 ? noise(random, random() % 200) : payload;
      if (!bad.empty()) bad[random() % bad.size()] = static_cast<char>(random());
      const Thrown scratch = thrown_by([&] { decoded(*codec, bad, 1 << 20); });
      const Thrown place =
          thrown_by([&] { decoded_in_place(*codec, bad, 1000 + random() % 3000); });
      if (scratch.any) REQUIRE(scratch.kind == Error::Kind::codec);
      if (place.any) REQUIRE(place.kind == Error::Kind::codec);
    }
  }
}

TEST_CASE("a record stops at its limit") {
  const std::string object(10 << 20, '\0');
  for (const std::string& payload :
       {encoded(*make_codec("zstd", "{}"), object), frame_without_size(object)}) {
    const auto codec = make_codec("zstd", "{}");
    CHECK_FALSE(decoded(*codec, payload, object.size() - 1).has_value());
    CHECK(decoded(*codec, payload, object.size()) == object);
  }
  const auto brotli = make_codec("brotli", "{}");
  const std::string payload = encoded(*brotli, object);
  CHECK_FALSE(decoded(*brotli, payload, object.size() - 1).has_value());
  CHECK(decoded(*brotli, payload, object.size()) == object);
}

TEST_CASE("a frame that claims more than its bytes can hold is an error") {
  std::string claim("\x28\xB5\x2F\xFD\xE0", 5);  // single segment, 8 bytes of content size
  claim += std::string("\0\0\0\0\0\1\0\0", 8) + std::string("\1\0\0", 3);
  const Thrown thrown = thrown_by([&] { make_codec("zstd", "{}")->decoded_size(bytes_of(claim)); });
  CHECK(contains(thrown.text, "impossible content size"));
}
