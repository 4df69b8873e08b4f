// The value of an element in the DICOM JSON model, read from its text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace iac::dicom {

// As DICOM writes it: several values with a backslash between them (PS3.5 6.4), the groups of a
// person's name with "=", numbers as the model has them; bytes as base64, a sequence as the JSON
// array of its items. Nothing where the element is empty. Throws Error when it is no element of the
// model.
std::optional<std::string> value_text(std::string_view element);

// Whether an element is a sequence. Throws Error when it is no element of the model.
bool is_sequence(std::string_view element);

// The bytes of an element of bytes; nothing where it has values instead, or none. Throws Error when
// they are not base64.
std::optional<std::vector<std::byte>> value_bytes(std::string_view element);

// The item of that number of a sequence, and the element of that tag in an item, as their JSON
// objects; nothing where there is none.
std::optional<std::string_view> item_of(std::string_view sequence, size_t number);
std::optional<std::string_view> element_of(std::string_view item, uint32_t tag);

// The values of an element of numbers. Throws Error when one of them is none.
std::vector<double> value_numbers(std::string_view element);

}  // namespace iac::dicom
