// Base64 (RFC 4648, padded).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace iac {

// Nothing when the text is not base64.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace iac
