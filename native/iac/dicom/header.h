// The DICOM header of one instance: what all instances of its series have in common (the template)
// and what is its own (the delta), taken together.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iac/dicom/elements.h"

namespace iac::dicom {

class Header {
 public:
  Header() = default;

  // Elements of the delta stand over those of the template. Elements that the DICOM JSON model
  // cannot express are put back where they were, as text where that is kept and else as UN. Throws
  // Error when one of them cannot be.
  Header(std::shared_ptr<const HeaderText> series, HeaderText own);

  // The JSON object of an element; nothing when the instance does not have it.
  std::optional<std::string_view> find(uint32_t tag) const;

  // Where elements stood that the model cannot express, of the data set: the tag of each, or that
  // of a sequence, the number of its item, a tag in it, ...
  const std::vector<std::vector<uint32_t>>& broken() const { return broken_; }

  // All elements as one JSON object, those of the file meta information first: its size, and its
  // text written to `out`.
  size_t json_size() const;
  void write_json(char* out) const;

 private:
  template <class Visit>
  void for_each(Visit visit) const;
  void restore(std::string_view errors);

  std::shared_ptr<const HeaderText> series_;
  std::unique_ptr<const HeaderText> delta_;
  std::vector<Element> own_;          // of the delta, and restored ones
  std::deque<std::string> restored_;  // their text
  std::vector<std::vector<uint32_t>> broken_;
};

}  // namespace iac::dicom
