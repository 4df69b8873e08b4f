// JPEG XL (ISO/IEC 18181) through libjxl: the two directions of the codec.
#pragma once

#include <string>
#include <vector>

#include "iac/bytes.h"
#include "iac/error.h"
#include "iac/image.h"

namespace iac::jxl {

struct Settings {
  bool lossless = false;
  double distance = 1.0;  // of lossy images, above 0
  int effort = 7;
  bool container = false;  // even where a bare codestream would do
};

// A payload that cannot be decoded.
inline Error bad(const std::string& reason) { return {Error::Kind::codec, "jxl: " + reason}; }

// An image that cannot be encoded.
inline Error refused(const std::string& reason) {
  return {Error::Kind::argument, "codec jxl: " + reason};
}

// The shape in a payload's header.
ImageShape read_shape(Bytes payload);

// Fills the bytes of the shape at `pixels`.
void decode(Bytes payload, const ImageShape& shape, std::byte* pixels);

// Appends to `out`.
void encode(const Settings& settings, const ImageShape& shape, const std::byte* pixels,
            std::vector<std::byte>& out);

}  // namespace iac::jxl
