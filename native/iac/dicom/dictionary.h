// The tags of the DICOM data dictionary (PS3.6) by their keywords.
#pragma once

#include <cstdint>
#include <string_view>

namespace iac::dicom {

// The tag that a user writes as a keyword, SliceThickness, or as a number, 00180050 or (0018,0050).
// Throws Error(argument), with the keyword that may be meant.
uint32_t parse_tag(std::string_view text);

}  // namespace iac::dicom
