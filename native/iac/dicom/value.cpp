#include "iac/dicom/value.h"

#include <array>
#include <charconv>

#include "iac/base64.h"
#include "iac/dicom/elements.h"
#include "iac/error.h"
#include "iac/json_text.h"

namespace iac::dicom {
namespace {

Error bad(const std::string& reason) { return {Error::Kind::pack, reason}; }

// What stands in an element's object; empty where it does not.
struct Parts {
  std::string_view vr, value, inline_binary;
};

Parts parts_of(std::string_view element) {
  JsonText json(element);
  Parts parts;
  if (json.next() != '{') throw bad("a DICOM element is not a JSON object");
  json.members([&](std::string_view key) {
    std::string_view* const part = key == "vr"             ? &parts.vr
                                   : key == "Value"        ? &parts.value
                                   : key == "InlineBinary" ? &parts.inline_binary
                                                           : nullptr;
    if (part != nullptr && !part->empty()) throw bad("a DICOM element has a member twice");
    const char first = json.next();
    const std::string_view value = json.value();
    if (part == nullptr) return;
    if (first != (part == &parts.value ? '[' : '"')) {
      throw bad("a DICOM element has a member of another type than the DICOM JSON model");
    }
    *part = value;
  });
  json.finish();
  if (parts.vr.size() != 4) throw bad("a DICOM element has no vr of two letters");
  return parts;
}

// The text between the quotes of a JSON string.
std::string unquoted(std::string_view string) {
  return unescaped(string.substr(1, string.size() - 2));
}

std::string name_text(JsonText& json) {
  constexpr std::array<std::string_view, 3> groups{"Alphabetic", "Ideographic", "Phonetic"};
  std::array<std::string, 3> texts;
  json.members([&](std::string_view key) {
    const char first = json.next();
    const std::string_view value = json.value();
    for (size_t i = 0; i < groups.size(); ++i) {
      if (key != groups[i]) continue;
      if (first != '"') throw bad("a person's name is not text");
      texts[i] = unquoted(value);
    }
  });
  std::string name = texts[0] + "=" + texts[1] + "=" + texts[2];
  name.erase(name.find_last_not_of('=') + 1);
  return name;
}

// Calls take(text) with each value of an array, an empty one where there is null.
template <class Take>
void for_each_value(std::string_view array, Take take) {
  JsonText json(array);
  json.items([&] {
    switch (json.next()) {
      case '{':
        return take(name_text(json));
      case '"':
        return take(unquoted(json.value()));
      case 'n':
        json.value();
        return take(std::string());
      case '[':
      case 't':
      case 'f':
        throw bad("a value is none of the DICOM JSON model");
      default:
        return take(std::string(json.value()));
    }
  });
}

}  // namespace

std::optional<std::string> value_text(std::string_view element) {
  const Parts parts = parts_of(element);
  if (parts.vr == "\"SQ\"") return std::string(parts.value.empty() ? "[]" : parts.value);
  if (!parts.inline_binary.empty()) return unquoted(parts.inline_binary);
  if (parts.value.empty()) return std::nullopt;
  std::string text;
  bool is_first = true;
  for_each_value(parts.value, [&](const std::string& value) {
    if (!is_first) text += '\\';
    text += value;
    is_first = false;
  });
  if (text.empty()) return std::nullopt;
  return text;
}

bool is_sequence(std::string_view element) { return parts_of(element).vr == "\"SQ\""; }

std::optional<std::vector<std::byte>> value_bytes(std::string_view element) {
  const Parts parts = parts_of(element);
  if (parts.inline_binary.empty()) return std::nullopt;
  auto bytes = from_base64(unquoted(parts.inline_binary));
  if (!bytes) throw bad("the bytes of a DICOM element are not base64");
  return bytes;
}

std::optional<std::string_view> item_of(std::string_view sequence, size_t number) {
  const Parts parts = parts_of(sequence);
  if (parts.value.empty()) return std::nullopt;
  std::optional<std::string_view> found;
  JsonText json(parts.value);
  size_t item = 0;
  json.items([&] {
    if (json.next() != '{') throw bad("an item of a sequence is not a JSON object");
    const std::string_view text = json.value();
    if (item++ == number) found = text;
  });
  return found;
}

std::optional<std::string_view> element_of(std::string_view item, uint32_t tag) {
  std::optional<std::string_view> found;
  JsonText json(item);
  const std::string wanted = tag_text(tag);
  json.members([&](std::string_view key) {
    const std::string_view element = json.value();
    if (key == wanted) found = element;
  });
  return found;
}

std::vector<double> value_numbers(std::string_view element) {
  const Parts parts = parts_of(element);
  std::vector<double> numbers;
  if (parts.value.empty()) return numbers;
  for_each_value(parts.value, [&](std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    text.erase(0, text.find_first_not_of(' '));
    if (text.starts_with('+') && !text.starts_with("+-")) text.erase(0, 1);
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [at, failed] = std::from_chars(text.data(), end, number);
    if (text.empty() || failed != std::errc{} || at != end) throw bad("a value is no number");
    numbers.push_back(number);
  });
  return numbers;
}

}  // namespace iac::dicom
