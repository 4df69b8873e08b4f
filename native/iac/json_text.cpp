#include "iac/json_text.h"

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "iac/bytes.h"
#include "iac/error.h"
#include "iac/utf8.h"

namespace iac {
namespace {

// Bytes of a string that are not passed over at once.
constexpr auto is_special = [] {
  std::array<bool, 256> special{};
  for (size_t i = 0; i < 0x20; ++i) special[i] = true;
  special['"'] = special['\\'] = true;
  return special;
}();

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

}  // namespace

JsonText::JsonText(std::string_view text)
    : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {
  if (!is_utf8(as_bytes(text.data(), text.size()))) fail("it is not UTF-8");
}

void JsonText::fail(const char* reason) const {
  throw Error(Error::Kind::pack,
              "JSON is invalid at byte " + std::to_string(at_ - begin_) + ": " + reason);
}

char JsonText::next() {
  while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  return at_ < end_ ? *at_ : '\0';
}

void JsonText::expect(char letter) {
  if (next() != letter || at_ == end_) {
    const char text[] = {'e', 'x', 'p', 'e', 'c', 't', 'e', 'd', ' ', letter, '\0'};
    fail(text);
  }
  ++at_;
}

void JsonText::open(char bracket) {
  expect(bracket);
  if (++depth_ > max_depth) fail("it is nested too deeply");
}

void JsonText::close(char bracket) {
  expect(bracket);
  --depth_;
}

bool JsonText::passed_comma() {
  if (next() != ',') return false;
  ++at_;
  return true;
}

void JsonText::finish() {
  next();
  if (at_ != end_) fail("expected the end");
}

std::string_view JsonText::value() {
  next();
  const char* const first = at_;
  pass();
  return {first, static_cast<size_t>(at_ - first)};
}

// A loop, so that depth takes no stack.
void JsonText::pass() {
  std::string brackets;  // that are open
  const auto pass_key = [this] {
    next();
    string();
    expect(':');
  };
  do {
    const char first = next();
    if (first == '{' || first == '[') {
      open(first);
      brackets += first;
      if (next() != (first == '{' ? '}' : ']')) {
        if (first == '{') pass_key();
        continue;
      }
    } else {
      pass_scalar();
    }
    while (!brackets.empty() && !passed_comma()) {
      close(brackets.back() == '{' ? '}' : ']');
      brackets.pop_back();
    }
    if (!brackets.empty() && brackets.back() == '{') pass_key();
  } while (!brackets.empty());
}

void JsonText::pass_scalar() {
  switch (next()) {
    case '"':
      string();
      return;
    case 't':
      return pass_word("true");
    case 'f':
      return pass_word("false");
    case 'n':
      return pass_word("null");
    default:
      return pass_number();
  }
}

std::string_view JsonText::string() {
  if (at_ == end_ || *at_ != '"') fail("expected a string");
  const char* const first = ++at_;
  while (true) {
    while (at_ < end_ && !is_special[static_cast<uint8_t>(*at_)]) ++at_;
    if (at_ == end_) fail("the string does not end");
    if (*at_ == '"') break;
    if (*at_ != '\\') fail("control character in a string");
    pass_escape();
  }
  return {first, static_cast<size_t>(at_++ - first)};
}

void JsonText::pass_escape() {
  ++at_;
  if (at_ == end_ || std::string_view("\"\\/bfnrtu").find(*at_) == std::string_view::npos) {
    fail("unknown escape");
  }
  if (*at_++ != 'u') return;
  const unsigned unit = pass_code_unit();
  if (unit < 0xD800 || unit > 0xDFFF) return;
  if (unit > 0xDBFF || end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') fail("half a character");
  at_ += 2;
  const unsigned low = pass_code_unit();
  if (low < 0xDC00 || low > 0xDFFF) fail("half a character");
}

unsigned JsonText::pass_code_unit() {
  unsigned unit = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const size_t digit =
        at_ < end_ ? std::string_view("0123456789abcdefABCDEF").find(*at_) : std::string_view::npos;
    if (digit == std::string_view::npos) fail("expected four hexadecimal digits");
    unit = unit * 16 + static_cast<unsigned>(digit < 16 ? digit : digit - 6);
  }
  return unit;
}

void JsonText::pass_number() {
  const auto digits = [this] {
    if (at_ == end_ || !is_digit(*at_)) fail("expected a value");
    while (at_ < end_ && is_digit(*at_)) ++at_;
  };
  if (at_ < end_ && *at_ == '-') ++at_;
  if (at_ < end_ && *at_ == '0') {
    ++at_;
  } else {
    digits();
  }
  if (at_ < end_ && *at_ == '.') {
    ++at_;
    digits();
  }
  if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    digits();
  }
}

void JsonText::pass_word(std::string_view word) {
  if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(word)) {
    fail("expected a value");
  }
  at_ += word.size();
}

std::string unescaped(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return std::string(text);
  return nlohmann::json::parse('"' + std::string(text) + '"').get<std::string>();
}

}  // namespace iac
