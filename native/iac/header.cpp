#include "iac/header.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "iac/error.h"
#include "iac/utf8.h"

namespace iac {

using nlohmann::json;

static constexpr size_t prefix_bytes = 16;
static constexpr size_t max_json_bytes = header_bytes - prefix_bytes;
// Most headers are shorter, and zeros behind.
static constexpr size_t first_read_bytes = 4096;
// As deep as the format's first reader goes, the outermost object included.
static constexpr int max_depth = 127;

static Error bad(const std::string& reason) { return {Error::Kind::pack, reason}; }

// The text without what stands inside its strings, so that brackets and digits are JSON's own.
static std::string without_strings(std::string_view text) {
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\')
      ++i;  // what it escapes is inside as well
    else if (!in_string)
      out += text[i];
  }
  return out;
}

// How deep objects and arrays lie in each other.
static int nesting(std::string_view text) {
  int depth = 0, deepest = 0;
  for (const char c : without_strings(text)) {
    if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
    if (c == '}' || c == ']') --depth;
  }
  return deepest;
}

static json parse_object(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) throw bad("header JSON starts with a byte order mark");
  if (!is_utf8(as_bytes(text.data(), text.size()))) throw bad("header JSON is not UTF-8");
  // The parser would take a NUL for the end of the text.
  if (text.find('\0') != std::string_view::npos) throw bad("header JSON contains a NUL byte");
  if (nesting(text) > max_depth) {
    throw bad("header JSON is nested deeper than " + std::to_string(max_depth) + " levels");
  }
  json parsed;
  try {
    parsed = json::parse(text);
  } catch (const json::exception& error) {
    throw bad(std::string("header JSON is invalid: ") + error.what());
  }
  if (!parsed.is_object()) throw bad("header JSON is not an object");
  return parsed;
}

static uint64_t unsigned_field(const json& header, const char* name) {
  const auto found = header.find(name);
  if (found == header.end()) throw bad(std::string("header field ") + name + " is missing");
  if (!found->is_number_unsigned()) {
    throw bad(std::string("header field ") + name + " is " + found->dump() +
              ", expected an unsigned integer");
  }
  return found->get<uint64_t>();
}

static void expect(const char* name, uint64_t value, uint64_t expected) {
  if (value != expected) {
    throw bad(std::string("header field ") + name + " is " + std::to_string(value) + ", expected " +
              std::to_string(expected));
  }
}

static Segment segment(const json& header, const std::string& name, uint64_t start,
                       uint64_t file_size) {
  const Segment found{unsigned_field(header, (name + "_offset").c_str()),
                      unsigned_field(header, (name + "_length").c_str())};
  expect((name + "_offset").c_str(), found.offset, start);
  if (found.length > file_size || found.offset > file_size - found.length) {
    throw bad(name + " segment, bytes " + std::to_string(found.offset) + " + " +
              std::to_string(found.length) + ", ends outside the file of " +
              std::to_string(file_size) + " bytes: the file was cut or the header is damaged");
  }
  return found;
}

// A codec whose name is not a string keeps the JSON text of what stands there, which no codec is
// called: reading stored bytes still works, decoding names it.
static CodecSpec codec_spec(const json& object, const char* name_key, const char* params_key) {
  CodecSpec spec;
  if (const auto name = object.find(name_key); name != object.end()) {
    spec.name = name->is_string() ? name->get<std::string>() : name->dump();
  }
  if (const auto params = object.find(params_key); params != object.end() && params->is_object()) {
    spec.params = params->dump();
  }
  return spec;
}

static std::vector<RecordCodec> read_record_codecs(const json& header) {
  std::vector<RecordCodec> codecs;
  const auto list = header.find("record_codecs");
  if (list == header.end()) return codecs;
  if (!list->is_array()) throw bad("header field record_codecs is not an array");
  for (const json& entry : *list) {
    const bool valid = entry.is_object() && entry.contains("id") &&
                       entry["id"].is_number_integer() && entry.contains("name");
    if (!valid) throw bad("header field record_codecs has an entry without id and name");
    codecs.push_back({entry["id"].get<int64_t>(), codec_spec(entry, "name", "params")});
  }
  return codecs;
}

static std::optional<FixedShape> read_fixed_shape(const json& header) {
  auto dtype = header.find("dtype");
  // The name that extended features have for it, so that readers of plain ones refuse them.
  if (dtype == header.end()) dtype = header.find("feature_dtype");
  if (!header.contains("feature_record_bytes") || !header.contains("feature_dim") ||
      dtype == header.end() || !dtype->is_string()) {
    return std::nullopt;
  }
  return FixedShape{unsigned_field(header, "feature_dim"), dtype->get<std::string>(),
                    unsigned_field(header, "feature_record_bytes")};
}

Header Header::read(const Source& source) {
  if (source.size() < header_bytes) {
    throw bad("file of " + std::to_string(source.size()) +
              " bytes is too small to be a pack, whose header alone has " +
              std::to_string(header_bytes));
  }
  std::string block(first_read_bytes, '\0');
  source.read_at(0, std::as_writable_bytes(std::span(block)));
  const auto* bytes = reinterpret_cast<const std::byte*>(block.data());

  if (!std::string_view(block).starts_with(magic)) {
    const bool older = block.starts_with("IATROC") && block[6] == '\0';
    throw bad(older ? "format version " + std::to_string(static_cast<uint8_t>(block[7])) +
                          " of the pack is not supported, this reads version 2"
                    : "bad magic: this is not an IatroCache pack");
  }
  if (const auto version = load<uint32_t>(bytes + 12); version != format_version) {
    throw bad("header version is " + std::to_string(version) + ", expected 2");
  }
  const auto json_length = load<uint32_t>(bytes + 8);
  if (json_length == 0 || json_length > max_json_bytes) {
    throw bad("header JSON length is " + std::to_string(json_length) + ", expected 1 to " +
              std::to_string(max_json_bytes));
  }

  Header header;
  header.text = block.substr(prefix_bytes, json_length);
  if (const size_t read = header.text.size(); read < json_length) {
    header.text.resize(json_length);
    source.read_at(block.size(), std::as_writable_bytes(std::span(header.text)).subspan(read));
  }
  const json fields = parse_object(header.text);
  expect("header_bytes", unsigned_field(fields, "header_bytes"), header_bytes);
  // Each segment is inside the file, so the sums below cannot overflow.
  header.slide_table = segment(fields, "slide_table", header_bytes, source.size());
  header.index_table =
      segment(fields, "index_table", header_bytes + header.slide_table.length, source.size());
  header.data =
      segment(fields, "data", header.index_table.offset + header.index_table.length, source.size());
  header.num_slides = unsigned_field(fields, "num_slides");
  header.num_records = unsigned_field(fields, "num_records");
  if (const auto type = fields.find("payload_type"); type != fields.end() && type->is_string()) {
    header.payload_type = type->get<std::string>();
  }
  header.codec = codec_spec(fields, "codec", "codec_params");
  header.names_codec = fields.contains("codec");
  header.record_codecs = read_record_codecs(fields);
  header.fixed = read_fixed_shape(fields);
  return header;
}

// A double in the fewest digits that read back equal, laid out as the format's first writer does:
// 16 places before the point and 5 after it before an exponent is used, which has its sign.
static std::string format_double(double value) {
  char digits[32];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::scientific).ptr;
  std::string_view text(digits, static_cast<size_t>(end - digits));
  std::string out;
  if (text.front() == '-') {
    out = "-";
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  std::string mantissa(text.substr(0, e));
  std::erase(mantissa, '.');
  const int exponent = std::stoi(std::string(text.substr(e + 1)));
  if (value == 0) return out + "0.0";
  const int count = static_cast<int>(mantissa.size());
  const int point = exponent + 1;  // digits before the decimal point
  if (count <= point && point <= 16) {
    return out + mantissa + std::string(static_cast<size_t>(point - count), '0') + ".0";
  }
  if (0 < point && point <= 16) {
    return out + mantissa.substr(0, static_cast<size_t>(point)) + "." +
           mantissa.substr(static_cast<size_t>(point));
  }
  if (-5 < point && point <= 0) {
    return out + "0." + std::string(static_cast<size_t>(-point), '0') + mantissa;
  }
  out += mantissa[0];
  if (count > 1) out += "." + mantissa.substr(1);
  return out + (exponent < 0 ? "e" : "e+") + std::to_string(exponent);
}

static void write_json(const json& value, size_t indent, std::string& out) {
  const bool object = value.is_object();
  if (value.is_number_float()) {
    out += format_double(value.get<double>());
  } else if ((object || value.is_array()) && !value.empty()) {
    out += object ? '{' : '[';
    const char* separator = "\n";
    for (const auto& [key, item] : value.items()) {
      out += separator + std::string(indent + 2, ' ');
      if (object) out += json(key).dump() + ": ";
      write_json(item, indent + 2, out);
      separator = ",\n";
    }
    out += "\n" + std::string(indent, ' ') + (object ? '}' : ']');
  } else {
    out += value.dump();
  }
}

// The parser turns an integer beyond 64 bits into a double without a word.
static void refuse_big_integers(std::string_view json_text) {
  const std::string plain = without_strings(json_text);
  const std::string_view text = plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '-' && (text[i] < '0' || text[i] > '9')) continue;
    const size_t end = std::min(text.find_first_not_of("+-.0123456789eE", i), text.size());
    const auto number = text.substr(i, end - i);
    if (number.find_first_of(".eE") == std::string_view::npos) {
      int64_t negative = 0;
      uint64_t positive = 0;
      const auto* first = number.data();
      const auto* last = first + number.size();
      const auto failed = number.front() == '-' ? std::from_chars(first, last, negative).ec
                                                : std::from_chars(first, last, positive).ec;
      if (failed == std::errc::result_out_of_range) {
        throw Error(Error::Kind::argument, "header integer " + std::string(number) +
                                               " does not fit in 64 bits, store it as a string");
      }
    }
    i = end - 1;
  }
}

std::string encode_header(std::string_view caller_json, const Segments& segments) {
  refuse_big_integers(caller_json);
  json fields;
  try {
    fields = parse_object(caller_json);
  } catch (const Error& error) {
    throw Error(Error::Kind::argument, error.reason());
  }
  fields["format"] = "IatroCache";
  fields["version"] = format_version;
  fields["header_bytes"] = header_bytes;
  uint64_t offset = header_bytes;
  const auto place = [&](const std::string& name, uint64_t length) {
    fields[name + "_offset"] = offset;
    fields[name + "_length"] = length;
    offset += length;
  };
  place("slide_table", segments.slide_table_length);
  place("index_table", segments.index_table_length);
  place("data", segments.data_length);
  fields["num_slides"] = segments.num_slides;
  fields["num_records"] = segments.num_records;

  std::string text;
  write_json(fields, 0, text);
  if (text.size() > max_json_bytes) {
    throw Error(Error::Kind::argument, "header JSON has " + std::to_string(text.size()) +
                                           " bytes, at most " + std::to_string(max_json_bytes) +
                                           " fit: move large values into a table");
  }
  std::string block(magic);
  const auto append = [&](uint32_t value) {
    block.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  append(static_cast<uint32_t>(text.size()));
  append(format_version);
  block += text;
  block.resize(header_bytes, '\0');
  return block;
}

}  // namespace iac
