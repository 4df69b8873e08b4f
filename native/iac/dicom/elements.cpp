#include "iac/dicom/elements.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "iac/error.h"
#include "iac/json_text.h"

namespace iac::dicom {
namespace {

Error bad(const std::string& reason) { return {Error::Kind::pack, reason}; }

uint32_t tag_of_key(std::string_view key) {
  uint32_t tag = 0;
  const auto [end, failed] = std::from_chars(key.data(), key.data() + key.size(), tag, 16);
  if (key.size() != 8 || failed != std::errc{} || end != key.data() + key.size()) {
    throw bad("an element's key is not a tag of eight hexadecimal digits");
  }
  return tag;
}

void add_elements(JsonText& json, std::vector<Element>& elements) {
  if (json.next() != '{') throw bad("its elements are not in a JSON object");
  json.members([&](std::string_view key) {
    const uint32_t tag = tag_of_key(key);
    if (json.next() != '{') throw bad("element " + tag_text(tag) + " is not a JSON object");
    elements.push_back({tag, json.value()});
  });
}

}  // namespace

std::optional<std::string_view> find_element(std::span<const Element> elements, uint32_t tag) {
  const auto at = std::lower_bound(
      elements.begin(), elements.end(), tag,
      [](const Element& element, uint32_t wanted) { return element.tag < wanted; });
  if (at == elements.end() || at->tag != tag) return std::nullopt;
  return at->json;
}

std::string tag_text(uint32_t tag) {
  char text[9];
  std::snprintf(text, sizeof text, "%08X", static_cast<unsigned>(tag));
  return text;
}

HeaderText::HeaderText(std::unique_ptr<std::byte[]> text, size_t size)
    : text_(std::move(text)), size_(size) {
  JsonText json({reinterpret_cast<const char*>(text_.get()), size_});
  if (json.next() != '{') throw bad("its text is not a JSON object");
  int datasets = 0, file_metas = 0;
  json.members([&](std::string_view key) {
    if (key == "dataset" || key == "file_meta") {
      ++(key == "dataset" ? datasets : file_metas);
      add_elements(json, elements_);
    } else if (key == "errors") {
      if (!errors_.empty()) throw bad("its errors stand there twice");
      if (json.next() != '[') throw bad("its errors are not in a JSON array");
      errors_ = json.value();
    } else {
      json.value();
    }
  });
  json.finish();
  if (datasets != 1 || file_metas != 1) {
    throw bad("it does not have its dataset and its file_meta once each");
  }
  const auto by_tag = [](const Element& a, const Element& b) { return a.tag < b.tag; };
  if (!std::is_sorted(elements_.begin(), elements_.end(), by_tag)) {
    std::sort(elements_.begin(), elements_.end(), by_tag);
  }
  const auto twice =
      std::adjacent_find(elements_.begin(), elements_.end(),
                         [](const Element& a, const Element& b) { return a.tag == b.tag; });
  if (twice != elements_.end()) {
    throw bad("element " + tag_text(twice->tag) + " stands there twice");
  }
}

}  // namespace iac::dicom
