#include "iac/dicom/dictionary.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "iac/error.h"

namespace iac::dicom {
namespace {

struct Entry {
  std::string_view keyword;
  uint32_t tag;
};

constexpr Entry entries[] = {
#include "iac/dicom/keywords.inc"
};

// A longer text is no misspelt keyword, and is not repeated in errors.
constexpr size_t longest_keyword = 80;

std::optional<uint32_t> parse_number(std::string_view text) {
  std::string digits(text);
  if (digits.size() == 11 && digits.front() == '(' && digits.back() == ')') {
    digits = digits.substr(1, 9);
  }
  if (digits.size() == 9 && digits[4] == ',') digits.erase(4, 1);
  if (digits.size() != 8) return std::nullopt;
  uint32_t tag = 0;
  const char* const end = digits.data() + digits.size();
  const auto [at, failed] = std::from_chars(digits.data(), end, tag, 16);
  if (failed != std::errc{} || at != end) return std::nullopt;
  return tag;
}

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

// Letters to insert, drop or replace, whatever their case, to make one text the other.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t k = 0; k < b.size(); ++k) {
      const size_t replaced = diagonal + (lower(a[i]) == lower(b[k]) ? 0 : 1);
      diagonal = row[k + 1];
      row[k + 1] = std::min({replaced, row[k] + 1, row[k + 1] + 1});
    }
  }
  return row.back();
}

std::string suggestion(std::string_view text) {
  const Entry* nearest = nullptr;
  size_t least = text.size() / 3 + 1;
  for (const Entry& entry : entries) {
    const size_t found = distance(text, entry.keyword);
    if (found < least) {
      least = found;
      nearest = &entry;
    }
  }
  return nearest != nullptr ? ", did you mean '" + std::string(nearest->keyword) + "'?" : "";
}

}  // namespace

uint32_t parse_tag(std::string_view text) {
  if (const auto tag = parse_number(text)) return *tag;
  const auto found = std::lower_bound(
      std::begin(entries), std::end(entries), text,
      [](const Entry& entry, std::string_view wanted) { return entry.keyword < wanted; });
  if (found != std::end(entries) && found->keyword == text) return found->tag;
  if (text.size() > longest_keyword) {
    throw Error(Error::Kind::argument,
                "a text of " + std::to_string(text.size()) + " bytes is no DICOM keyword");
  }
  throw Error(Error::Kind::argument, "there is no DICOM keyword '" + std::string(text) + "'" +
                                         suggestion(text) +
                                         "; tags are written as '00180050' or '(0018,0050)' too");
}

}  // namespace iac::dicom
