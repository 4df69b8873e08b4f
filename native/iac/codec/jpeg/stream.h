// The marker segments of JPEG streams (ITU-T T.81), read before any library sees them: the shape,
// and whether the scans are what a decoder can be trusted with.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "iac/bytes.h"
#include "iac/codec/jpeg/defined.h"
#include "iac/error.h"
#include "iac/image.h"

namespace iac::jpeg {

// Of height and width; both libraries have this limit.
constexpr uint32_t max_side = 65500;

enum class Process : uint8_t { sequential, progressive, lossless };

struct Component {
  uint8_t id = 0, horizontal = 0, vertical = 0;
  uint8_t quantization = 0;  // where its table is
};

// What stands before the first scan.
struct Header {
  Process process = Process::sequential;
  bool arithmetic = false;
  int precision = 0;
  uint32_t height = 0, width = 0;
  std::array<Component, 3> components;
  size_t count = 0;  // of components, 1 or 3
  bool jfif = false;
  int adobe_transform = -1;  // -1: no Adobe segment
  size_t first_scan = 0;     // offset of its marker

  ImageShape shape() const;
};

// Tables that abbreviated streams left out, as segments without SOI and EOI.
struct Tables {
  std::vector<std::byte> segments;
  Defined defined;
};

// Throws Error(codec) for damage and for streams that cannot be decoded.
Header read_header(Bytes stream);

// The length of the stream up to and with its EOI. Walks through all scans and throws Error(codec)
// where one is missing, repeated, lacks its tables, or has what could lead a decoder astray; damage
// inside the entropy-coded data is left to the decoder.
size_t check_scans(Bytes stream, const Header& header, const Tables& tables);

// From a stream of tables in base64, with SOI and EOI or without them. Throws Error(argument).
Tables read_tables(const std::string& base64);

Error bad_stream(const std::string& reason);

}  // namespace iac::jpeg
