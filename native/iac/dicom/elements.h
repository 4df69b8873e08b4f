// Data elements in the DICOM JSON model (PS3.18 annex F), as pieces of its text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iac/bytes.h"

namespace iac::dicom {

struct Element {
  uint32_t tag = 0;       // group * 65536 + element
  std::string_view json;  // its object, such as {"Value":["CT"],"vr":"CS"}
};

// The JSON object of the element with that tag, of elements by tag.
std::optional<std::string_view> find_element(std::span<const Element> elements, uint32_t tag);

// "00080060", as keys of the model are.
std::string tag_text(uint32_t tag);

// The JSON text that a pack keeps of the headers of a series or of one instance: an object with
// the elements of `file_meta` and `dataset`, and `errors`, elements that the model cannot express.
class HeaderText {
 public:
  // Throws Error when the text is not such an object, or names an element twice.
  HeaderText(std::unique_ptr<std::byte[]> text, size_t size);

  // All of them, by tag.
  std::span<const Element> elements() const { return elements_; }
  // A JSON array; empty when there are none.
  std::string_view errors() const { return errors_; }
  size_t bytes() const { return size_ + elements_.size() * sizeof(Element); }

 private:
  std::unique_ptr<std::byte[]> text_;
  size_t size_;
  std::vector<Element> elements_;
  std::string_view errors_;
};

}  // namespace iac::dicom
