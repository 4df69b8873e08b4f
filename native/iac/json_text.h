// Going through JSON text (RFC 8259) without building anything of it: every value is checked, and
// comes as the piece of text that it is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace iac {

class JsonText {
 public:
  // Throws Error, as all below do for text that is no JSON or nested too deeply.
  explicit JsonText(std::string_view text);

  // The first byte of the next value, which tells its kind; 0 at the end of the text.
  char next();

  // Passes over the next value: its text.
  std::string_view value();

  // Passes over the next value, a string: what stands between its quotes.
  std::string_view string();

  // Passes over an object, calling member(key) for each of its members: it must pass over the
  // member's value. Escapes in the key stay as they are.
  template <class Member>
  void members(Member member) {
    open('{');
    if (next() != '}') {
      do {
        next();
        const std::string_view key = string();
        expect(':');
        member(key);
      } while (passed_comma());
    }
    close('}');
  }

  // Passes over an array, calling item() at each of its items: it must pass over the item.
  template <class Item>
  void items(Item item) {
    open('[');
    if (next() != ']') {
      do {
        item();
      } while (passed_comma());
    }
    close(']');
  }

  // Nothing but space is left.
  void finish();

 private:
  static constexpr size_t max_depth = 512;

  [[noreturn]] void fail(const char* reason) const;
  void open(char bracket);
  void close(char bracket);
  void expect(char letter);
  bool passed_comma();
  void pass();
  void pass_scalar();
  void pass_number();
  void pass_word(std::string_view word);
  void pass_escape();
  unsigned pass_code_unit();

  const char* begin_;
  const char* at_;
  const char* end_;
  size_t depth_ = 0;
};

// What a JSON string stands for, of the text between its quotes.
std::string unescaped(std::string_view text);

}  // namespace iac
