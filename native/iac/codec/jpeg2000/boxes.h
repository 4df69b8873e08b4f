// The JP2 file format (ISO 15444-1 annex I) around a codestream, as far as it says what the samples
// mean. Codestreams stand alone as well.
#pragma once

#include <optional>
#include <vector>

#include "iac/bytes.h"

namespace iac::j2k {

enum class Colour {
  unspecified,  // a bare codestream does not say
  given,        // what the components hold is what is handed out: gray, RGB, or by an ICC profile
  sycc,         // to be converted to RGB
};

// Colours by index: a channel each from a column, over all entries.
struct Palette {
  uint32_t entries = 0;
  uint32_t precision = 0;
  std::vector<std::vector<int32_t>> columns;
};

struct Boxes {
  Bytes codestream;  // and what follows it
  Colour colour = Colour::unspecified;
  std::optional<Palette> palette;
  // The channel at each place of the image; empty where they are in order already.
  std::vector<uint32_t> order;
};

// Throws Error for what is neither, is cut, or has colours that are not converted.
Boxes read_boxes(Bytes payload);

}  // namespace iac::j2k
