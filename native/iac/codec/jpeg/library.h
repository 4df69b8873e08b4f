// Four builds of libjpeg's interface, which differ in their samples and structures: each has its
// own source file around the code they share, calls.h.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "iac/bytes.h"
#include "iac/image.h"

namespace iac::jpeg {

struct Decoding {
  std::span<const Bytes> pieces;  // that make up one stream
  ImageShape shape;
  bool from_ycbcr = false;
  std::byte* pixels = nullptr;
};

struct Encoding {
  ImageShape shape;
  const std::byte* pixels = nullptr;
  std::vector<std::byte>* out = nullptr;  // what is there is kept
  int quality = 0;
  bool progressive = false;
  int horizontal = 1, vertical = 1;  // luminance samples for one of chrominance
};

// Each returns what went wrong, or nothing. A warning is taken for an error.

// libjpeg-turbo: 8 bits, with loss.
std::string decode_turbo(const Decoding& job);
std::string encode_turbo(const Encoding& job);

// GDCM's: 12 bits with loss, and any precision without loss.
std::string decode_gdcm8(const Decoding& job);
std::string decode_gdcm12(const Decoding& job);
std::string decode_gdcm16(const Decoding& job);
std::string encode_gdcm8(const Encoding& job);
std::string encode_gdcm16(const Encoding& job);

}  // namespace iac::jpeg
