// What the functions that give images have in common.
#pragma once

#include <iac/error.h>

#include <cstdint>
#include <string>

namespace iac::duckdb {

// A height or width as the INTEGER that it is in results. Throws Error.
inline int32_t image_side(uint32_t value, int64_t row) {
  if (value <= INT32_MAX) return static_cast<int32_t>(value);
  throw Error(Error::Kind::codec, "the image has a side of " + std::to_string(value) + " pixels")
      .at(row);
}

}  // namespace iac::duckdb
