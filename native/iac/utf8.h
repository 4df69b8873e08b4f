// UTF-8 as Unicode defines it (RFC 3629): no surrogates, no overlong forms, at most U+10FFFF.
#pragma once

#include "iac/bytes.h"

namespace iac {

bool is_ascii(Bytes text);
bool is_utf8(Bytes text);

}  // namespace iac
