#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "iac/header.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;
using nlohmann::json;

// A file of a header with this JSON and `behind` bytes of segments.
static std::string file_of(const std::string& text, size_t behind, uint32_t version = 2,
                           std::optional<uint32_t> length = {}) {
  std::string block(magic);
  const uint32_t words[] = {length.value_or(static_cast<uint32_t>(text.size())), version};
  block.append(reinterpret_cast<const char*>(words), sizeof words);
  block += text;
  block.resize(header_bytes, '\0');
  return block + std::string(behind, 'x');
}

static Header read_header(std::string file) { return Header::read(MemorySource(std::move(file))); }

static std::string refusal(const std::string& file) {
  const Thrown thrown = thrown_by([&] { read_header(file); });
  CHECK(thrown.kind == Error::Kind::pack);
  return thrown.text;
}

// Fields of a pack of 8 + 16 + 32 bytes.
static json fields() {
  return {{"header_bytes", 65536},    {"slide_table_offset", 65536},
          {"slide_table_length", 8},  {"index_table_offset", 65544},
          {"index_table_length", 16}, {"data_offset", 65560},
          {"data_length", 32},        {"num_slides", 1},
          {"num_records", 2}};
}

static std::string refusal(const json& changed) { return refusal(file_of(changed.dump(), 56)); }

// Text with the fields that a header must have.
static std::string with_fields(const std::string& more) {
  return "{" + more + ", " + fields().dump().substr(1);
}

TEST_CASE("a header gives its segments, counts and codec") {
  json all = fields();
  all["codec"] = "zstd";
  all["codec_params"] = {{"level", 3}};
  all["payload_type"] = "tiles";
  const Header header = read_header(file_of(all.dump(), 56));
  CHECK(header.text == all.dump());
  CHECK((header.slide_table.offset == 65536 && header.slide_table.length == 8));
  CHECK((header.index_table.offset == 65544 && header.index_table.length == 16));
  CHECK((header.data.offset == 65560 && header.data.length == 32));
  CHECK((header.num_slides == 1 && header.num_records == 2));
  CHECK(header.codec.name == "zstd");
  CHECK(header.codec.params == "{\"level\":3}");
  CHECK(header.payload_type == "tiles");
  CHECK_FALSE(header.fixed.has_value());
  CHECK(header.record_codecs.empty());
}

TEST_CASE("a header without a codec is one of plain bytes") {
  const Header header = read_header(file_of(fields().dump(), 56));
  CHECK(header.codec.name == "none");
  CHECK(header.codec.params == "{}");
  json null = fields();
  null["codec"] = nullptr;
  null["codec_params"] = nullptr;
  CHECK(read_header(file_of(null.dump(), 56)).codec.name == "null");
}

TEST_CASE("a file without room for a header is refused") {
  for (const size_t size : {0, 10, 65535}) {
    const std::string text = refusal(std::string(size, 'x'));
    CHECK(contains(text, "file of " + std::to_string(size) + " bytes is too small"));
  }
}

TEST_CASE("another magic or version is refused by name") {
  const std::string good = file_of(fields().dump(), 56);
  for (const char version : {'\1', '\3'}) {
    std::string other = good;
    other[7] = version;
    CHECK(contains(refusal(other), "format version " + std::to_string(version) + " of the pack"));
  }
  std::string other = good;
  other[0] = 'X';
  CHECK(contains(refusal(other), "bad magic"));
  for (const uint32_t version : {0u, 1u, 3u, 0x02000000u}) {
    CHECK(contains(refusal(file_of(fields().dump(), 56, version)),
                   "header version is " + std::to_string(version) + ", expected 2"));
  }
}

TEST_CASE("a wrong JSON length is refused") {
  const std::string text = fields().dump();
  const auto size = static_cast<uint32_t>(text.size());
  for (const uint32_t length : {0u, 65521u, 0xFFFFFFFFu}) {
    CHECK(contains(refusal(file_of(text, 56, 2, length)),
                   "header JSON length is " + std::to_string(length) + ", expected 1 to 65520"));
  }
  // One byte less, one NUL more, all the padding.
  for (const uint32_t length : {size - 1, size + 1, 65520u}) {
    CHECK(contains(refusal(file_of(text, 56, 2, length)), "header JSON"));
  }
}

TEST_CASE("space within the JSON length, and anything behind it, is passed over") {
  CHECK_NOTHROW(read_header(file_of(" \n\t" + fields().dump() + "  \r\n", 56)));
  std::string padded = file_of(fields().dump(), 56);
  std::fill(padded.begin() + 4096, padded.begin() + header_bytes, '\xFF');
  CHECK_NOTHROW(read_header(padded));
  CHECK_NOTHROW(read_header(file_of(fields().dump(), 56 + 4096)));
}

TEST_CASE("what is not a JSON object is refused") {
  CHECK(contains(refusal(file_of("{\"a\": ", 56)), "header JSON is invalid"));
  CHECK(contains(refusal(file_of("[1]", 56)), "header JSON is not an object"));
  CHECK(contains(refusal(file_of("\xEF\xBB\xBF" + fields().dump(), 56)), "byte order mark"));
  CHECK(contains(refusal(file_of(with_fields("\"a\": \"\xFF\""), 56)), "not UTF-8"));
  CHECK(contains(refusal(file_of(with_fields("\"a\": \"\xED\xA0\x80\""), 56)), "not UTF-8"));
  for (const char* value :
       {"NaN", "Infinity", "\"\\ud800\"", "\"\\udc00\"", "1e400", "01", "'x'"}) {
    CHECK(contains(refusal(file_of(with_fields("\"a\": " + std::string(value)), 56)),
                   "header JSON is invalid"));
  }
  CHECK(contains(refusal(file_of(fields().dump() + "{}", 56)), "header JSON is invalid"));
}

TEST_CASE("NUL ends no header early") {
  const std::string text = fields().dump();
  CHECK(contains(refusal(file_of(text + '\0', 56)), "NUL"));
  CHECK(contains(refusal(file_of(text + std::string("\0junk", 5), 56)), "NUL"));
}

TEST_CASE("a header is nested 127 levels deep and no deeper") {
  const auto nested = [](size_t levels, char open, char close) {
    const std::string inner = open == '{' ? "{\"k\":" : "[";
    std::string text;
    for (size_t i = 0; i + 1 < levels; ++i) text += inner;
    text += open == '{' ? "1" : "";
    return "\"a\": " + text + std::string(levels - 1, close);
  };
  for (const auto& [open, close] : {std::pair{'[', ']'}, std::pair{'{', '}'}}) {
    CHECK_NOTHROW(read_header(file_of(with_fields(nested(127, open, close)), 56)));
    CHECK(contains(refusal(file_of(with_fields(nested(128, open, close)), 56)),
                   "nested deeper than 127 levels"));
    CHECK_NOTHROW(encode_header("{" + nested(127, open, close) + "}", {}));
    const std::string deeper = "{" + nested(128, open, close) + "}";
    CHECK(thrown_by([&] { encode_header(deeper, {}); }).kind == Error::Kind::argument);
  }
  CHECK(contains(refusal(file_of(std::string(65000, '['), 56)), "nested deeper"));
  // Brackets in strings are text.
  CHECK_NOTHROW(
      read_header(file_of(with_fields("\"a\": \"\\\"" + std::string(200, '[') + "\""), 56)));
}

TEST_CASE("a header full of small objects is read at once") {
  std::string many = "\"a\": [";
  while (many.size() < 60000) many += "{},";
  CHECK_NOTHROW(read_header(file_of(with_fields(many + "{}]"), 56)));
}

TEST_CASE("the last of duplicate keys counts") {
  std::string text = fields().dump();
  text.insert(1, "\"num_records\": 7, \"codec\": \"zstd\", \"codec\": \"brotli\", ");
  const Header header = read_header(file_of(text, 56));
  CHECK(header.num_records == 2);
  CHECK(header.codec.name == "brotli");
}

TEST_CASE("each layout field must be there and be an unsigned integer") {
  const json good = fields();
  for (const auto& [name, value] : good.items()) {
    json changed = good;
    changed.erase(name);
    CHECK(contains(refusal(changed), "header field " + name + " is missing"));
    for (const json& wrong :
         {json("3"), json(-1), json(1.0), json(true), json(nullptr), json({1})}) {
      changed = good;
      changed[name] = wrong;
      CHECK(contains(refusal(changed), "header field " + name + " is " + wrong.dump() +
                                           ", expected an unsigned integer"));
    }
    std::string big = good.dump();
    const std::string key = "\"" + name + "\":";
    big.insert(big.find(key) + key.size(), "1000000000000000000000");
    CHECK(contains(refusal(file_of(big, 56)), name));
  }
}

TEST_CASE("segments stand one behind the other and end inside the file") {
  const json good = fields();
  for (const auto& [name, value] : good.items()) {
    if (name.starts_with("num_")) continue;
    for (const uint64_t wrong : {value.get<uint64_t>() - 1, value.get<uint64_t>() + 1,
                                 value.get<uint64_t>() + 8, UINT64_MAX, uint64_t{1} << 63}) {
      if (name == "data_length" && wrong < value) continue;  // then bytes follow the data
      json changed = good;
      changed[name] = wrong;
      const std::string text = refusal(changed);
      if (!name.ends_with("_length")) {
        CHECK(contains(text, "header field " + name + " is " + std::to_string(wrong) +
                                 ", expected " + std::to_string(value.get<uint64_t>())));
      }
    }
  }
  json changed = good;
  changed["data_length"] = 33;
  CHECK(
      contains(refusal(changed), "data segment, bytes 65560 + 33, ends outside the file of 65592"));
  CHECK(contains(refusal(file_of(good.dump(), 55)), "data segment"));
  CHECK(contains(refusal(file_of(good.dump(), 0)), "slide_table segment"));
}

TEST_CASE("format and version in the JSON are not looked at") {
  for (const char* more : {"\"version\": 3", "\"version\": \"2\"", "\"format\": \"other\""}) {
    CHECK_NOTHROW(read_header(file_of(with_fields(more), 56)));
  }
}

TEST_CASE("record codecs and the shape of fixed records come from the header") {
  json all = fields();
  all["record_codecs"] = {{{"id", 7}, {"name", "zstd"}, {"params", {{"level", 1}}}},
                          {{"id", 0}, {"name", "none"}}};
  all["feature_dim"] = 4;
  all["feature_record_bytes"] = 16;
  all["dtype"] = "float32";
  const Header header = read_header(file_of(all.dump(), 56));
  REQUIRE(header.record_codecs.size() == 2);
  CHECK(header.record_codecs[0].id == 7);
  CHECK(header.record_codecs[0].codec.name == "zstd");
  CHECK(header.record_codecs[0].codec.params == "{\"level\":1}");
  CHECK(header.record_codecs[1].codec.params == "{}");
  REQUIRE(header.fixed.has_value());
  CHECK((header.fixed->dim == 4 && header.fixed->record_bytes == 16));
  CHECK(header.fixed->dtype == "float32");

  all["feature_dtype"] = "float64";
  CHECK(read_header(file_of(all.dump(), 56)).fixed->dtype == "float32");
  all.erase("dtype");
  CHECK(read_header(file_of(all.dump(), 56)).fixed->dtype == "float64");

  for (const json& wrong :
       {json("zstd"), json::array({1}), json::array({{{"id", 1}}}),
        json::array({{{"name", "zstd"}}}), json::array({{{"id", "1"}, {"name", "zstd"}}})}) {
    all["record_codecs"] = wrong;
    CHECK(contains(refusal(all), "record_codecs"));
  }
  all.erase("record_codecs");
  all["feature_dim"] = -1;
  CHECK(contains(refusal(all), "header field feature_dim is -1"));
}

// --- writing ---

static std::string encoded_text(const std::string& caller, const Segments& segments = {}) {
  const std::string block = encode_header(caller, segments);
  REQUIRE(block.size() == header_bytes);
  REQUIRE(block.starts_with(magic));
  const auto length = load<uint32_t>(reinterpret_cast<const std::byte*>(block.data()) + 8);
  CHECK(load<uint32_t>(reinterpret_cast<const std::byte*>(block.data()) + 12) == 2);
  CHECK(block.find_first_not_of('\0', 16 + length) == std::string::npos);
  return block.substr(16, length);
}

// How a value of the caller's is printed.
static std::string printed(const std::string& value) {
  const std::string text = encoded_text("{\"a\": " + value + "}");
  REQUIRE(text.starts_with("{\n  \"a\": "));
  return text.substr(9, text.find(",\n  \"data_length\"") - 9);
}

TEST_CASE("a written header has sorted keys, two spaces of indentation and the layout") {
  CHECK(encoded_text(
            "{\"z\": [1, {\"b\": null, \"a\": true}], \"codec\": \"zstd\", \"e\": {}, \"l\": []}",
            {8, 16, 32, 1, 2}) == R"({
  "codec": "zstd",
  "data_length": 32,
  "data_offset": 65560,
  "e": {},
  "format": "IatroCache",
  "header_bytes": 65536,
  "index_table_length": 16,
  "index_table_offset": 65544,
  "l": [],
  "num_records": 2,
  "num_slides": 1,
  "slide_table_length": 8,
  "slide_table_offset": 65536,
  "version": 2,
  "z": [
    1,
    {
      "a": true,
      "b": null
    }
  ]
})");
}

TEST_CASE("the layout overrides what the caller says of it") {
  const std::string text =
      encoded_text("{\"version\": 9, \"num_records\": \"x\", \"data_offset\": -1}");
  CHECK(contains(text, "\"version\": 2"));
  CHECK(contains(text, "\"num_records\": 0"));
  CHECK(contains(text, "\"data_offset\": 65536"));
}

TEST_CASE("a written header is read back") {
  const std::string block = encode_header("{\"codec\": \"brotli\"}", {8, 16, 32, 1, 2});
  const Header header = read_header(block + std::string(56, 'x'));
  CHECK(header.codec.name == "brotli");
  CHECK((header.data.offset == 65560 && header.data.length == 32));
}

TEST_CASE("floats are printed as the format's first writer prints them") {
  for (const char* value : {"1e+16",
                            "0.00001",
                            "1e-6",
                            "1.2345678901234568e+17",
                            "-0.0",
                            "0.0",
                            "5e-324",
                            "1.7976931348623157e+308",
                            "-1.7976931348623157e+308",
                            "2.2250738585072014e-308",
                            "1000000000000000.0",
                            "1234567890123456.8",
                            "9007199254740992.0",
                            "0.1",
                            "1.5",
                            "0.00009999",
                            "0.000012345678",
                            "1e+17",
                            "1e+21",
                            "1.0",
                            "-1.0",
                            "123.456",
                            "3.141592653589793",
                            "9.99e-6",
                            "1e-7",
                            "1.5e+16"}) {
    CHECK(printed(value) == value);
  }
  CHECK(printed("1e16") == "1e+16");
  CHECK(printed("1E5") == "100000.0");
  CHECK(printed("123456789012345680.0") == "1.2345678901234568e+17");
  CHECK(printed("0.1000000000000000055511151231257827") == "0.1");
}

TEST_CASE("integers keep their 64 bits or are refused") {
  for (const char* value : {"-9223372036854775808", "18446744073709551615", "0", "-1", "42"}) {
    CHECK(printed(value) == value);
  }
  for (const char* value : {"18446744073709551616", "-9223372036854775809",
                            "1000000000000000000000000000000", "[1, [18446744073709551616]]"}) {
    const Thrown thrown = thrown_by([&] { printed(value); });
    CHECK(thrown.kind == Error::Kind::argument);
    CHECK(contains(thrown.text, "does not fit in 64 bits"));
  }
  CHECK(printed("\"18446744073709551616 \\\" 99999999999999999999\"").size() > 40);
}

TEST_CASE("strings keep their characters and escape as few as JSON must") {
  for (const char* value : {"\"\\u0000\\u001f\x7F\"", "\"\xE2\x80\xA8\xC3\xA9/\xF0\x9F\xA9\xBA\"",
                            "\"\\\\\\\"\\b\\f\\n\\r\\t\""}) {
    CHECK(printed(value) == value);
  }
  CHECK(printed("\"\\u00e9\\/\\ud83e\\ude7a\"") == "\"\xC3\xA9/\xF0\x9F\xA9\xBA\"");
  CHECK(contains(encoded_text("{\"\\u00e9\\n\": 1}"), "\"\xC3\xA9\\n\": 1"));
}

TEST_CASE("a header that cannot be written is an argument error") {
  const auto kind_of = [](const std::string& text) {
    return thrown_by([&] { encode_header(text, {}); }).kind;
  };
  for (const std::string text :
       {"", "[]", "{", "{\"a\": NaN}", "{\"a\": 1e999}", "{\"a\": \"\\ud800\"}"}) {
    CHECK(kind_of(text) == Error::Kind::argument);
  }
  CHECK(kind_of(std::string("{}\0", 3)) == Error::Kind::argument);
}

TEST_CASE("the longest header that fits has 65520 bytes") {
  const size_t empty = encoded_text("{\"a\": \"\"}").size();
  const auto text_of_size = [&](size_t size) {
    return "{\"a\": \"" + std::string(size - empty, 'x') + "\"}";
  };
  CHECK(encoded_text(text_of_size(65520)).size() == 65520);
  const Thrown thrown = thrown_by([&] { encode_header(text_of_size(65521), {}); });
  CHECK(thrown.kind == Error::Kind::argument);
  CHECK(contains(thrown.text, "header JSON has 65521 bytes, at most 65520 fit"));
}
