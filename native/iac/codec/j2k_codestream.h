// What the markers of a JPEG 2000 codestream say (ISO 15444-1 annex A, 15444-15 for HT). The
// libraries trust them: here is checked that they are whole, agree with each other and with the
// payload's size, before a library sees them.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "iac/bytes.h"

namespace iac::j2k {

constexpr uint32_t max_components = 4;
constexpr uint32_t max_levels = 32;

struct Component {
  uint32_t precision = 0;
  bool is_signed = false;
  uint32_t dx = 1, dy = 1;  // a sample stands on each dx-th column and dy-th row of the grid
  uint32_t x0 = 0, y0 = 0;  // of its first sample, counted in its own samples
  uint32_t width = 0, height = 0;
};

// A codestream of one tile, layer and precinct a resolution, made of nothing that OpenJPH 0.9 does
// not know or gets wrong.
struct PlainHt {
  Bytes body;
  uint32_t width = 0, height = 0, components = 0;
  uint32_t levels = 0;
  uint32_t block_width = 0, block_height = 0;  // as powers of two
  std::array<uint8_t, max_levels + 1> precincts{};
  std::vector<uint32_t> planes;  // bits of a band's samples: the lowest band, then three by three
  bool by_component = false;     // all packets of a component before those of the next
};

struct Codestream {
  Bytes bytes;                // SOC to EOC
  std::vector<Bytes> bodies;  // the tile parts without their headers
  std::vector<Component> components;
  bool is_ht = false;
  bool is_reversible = false;
  bool has_transform = false;  // of the first three components
  size_t transform_at = 0;     // where in `bytes` that is said
  bool has_comment = false;
  std::optional<PlainHt> plain_ht;
};

// Throws Error when the codestream is damaged beyond doubt, is cut, or has what no library here
// decodes. Bytes behind its end are passed over.
Codestream read_codestream(Bytes bytes);

// The number of decompositions that suits an image of these sides.
uint32_t decompositions(uint32_t width, uint32_t height);

}  // namespace iac::j2k
