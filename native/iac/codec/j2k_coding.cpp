#include "iac/codec/j2k_coding.h"

#include <algorithm>

#include "iac/codec/j2k_reader.h"

namespace iac::j2k {
namespace {

Coding read_coding(Reader& reader, bool has_precincts) {
  Coding coding;
  coding.levels = reader.u8();
  coding.block_width = reader.u8() + 2;
  coding.block_height = reader.u8() + 2;
  coding.style = reader.u8();
  const uint32_t kernel = reader.u8();
  coding.is_reversible = kernel == 1;
  if (coding.levels > max_levels || coding.block_width > 10 || coding.block_height > 10 ||
      coding.block_width + coding.block_height > 12 || coding.style > 0x7F || kernel > 1) {
    throw bad("a COD or COC marker has impossible values");
  }
  coding.precincts.fill(0xFF);
  for (uint32_t r = 0; has_precincts && r <= coding.levels; ++r) {
    coding.precincts[r] = static_cast<uint8_t>(reader.u8());
    if (r > 0 && ((coding.precincts[r] & 15) == 0 || coding.precincts[r] >> 4 == 0)) {
      throw bad("a precinct has no code-blocks");
    }
  }
  if (reader.left() > 0) throw bad("a COD or COC marker has a wrong length");
  return coding;
}

uint64_t precincts_along(Interval side, uint32_t exponent) {
  return side.size() == 0 ? 0 : ((side.to - 1) >> exponent) - (side.from >> exponent) + 1;
}

}  // namespace

uint64_t Coding::count_precincts(Interval x, Interval y, uint64_t most) const {
  uint64_t count = 0;
  for (uint32_t r = 0; r <= levels && count <= most; ++r) {
    const uint64_t scale = uint64_t{1} << (levels - r);
    count += precincts_along(x.divided(scale), precincts[r] & 15) *
             precincts_along(y.divided(scale), precincts[r] >> 4);
  }
  return count <= most ? count : most + 1;
}

uint64_t Coding::count_blocks(Interval x, Interval y, uint64_t most) const {
  uint64_t count = 0;
  for (uint32_t r = 0; r <= levels && count <= most; ++r) {
    const uint64_t scale = uint64_t{1} << (levels - r);
    const uint32_t across = std::min<uint32_t>(block_width, precincts[r] & 15);
    const uint32_t down = std::min<uint32_t>(block_height, precincts[r] >> 4);
    count += ((x.divided(scale).size() >> across) + 1) * ((y.divided(scale).size() >> down) + 1);
  }
  return count <= most ? count : most + 1;
}

void TileCoding::read_cod(Bytes content) {
  Reader reader(content);
  const uint32_t style = reader.u8();
  order = reader.u8();
  layers = reader.u16();
  const uint32_t transform = reader.u8();
  if (style > 7 || order > 4 || layers == 0 || transform > 1) {
    throw bad("the COD marker has impossible values");
  }
  has_packet_markers |= (style & 6) != 0;
  has_transform = transform == 1;
  const Coding coding = read_coding(reader, (style & 1) != 0);
  for (Coding& each : components) {
    if (!each.is_own) each = coding;
  }
}

void TileCoding::read_coc(Bytes content, size_t component_count) {
  Reader reader(content);
  const uint32_t component = reader.u8();
  const uint32_t style = reader.u8();
  if (component >= component_count || style > 1) {
    throw bad("a COC marker has impossible values");
  }
  components[component] = read_coding(reader, style == 1);
  components[component].is_own = true;
}

void Quantization::read(Bytes content) {
  Reader reader(content);
  const uint32_t first = reader.u8();
  style = first & 31;
  guard_bits = first >> 5;
  while (reader.left() > 0) exponents.push_back(style == 0 ? reader.u8() >> 3 : reader.u16() >> 11);
}

}  // namespace iac::j2k
