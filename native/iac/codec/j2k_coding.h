// The segments of a codestream that say how samples are coded: COD, COC and QCD.
#pragma once

#include <array>
#include <vector>

#include "iac/bytes.h"
#include "iac/codec/j2k_codestream.h"

namespace iac::j2k {

struct Interval {
  uint64_t from, to;

  uint64_t size() const { return to > from ? to - from : 0; }
  Interval divided(uint64_t by) const { return {(from + by - 1) / by, (to + by - 1) / by}; }
};

// How a component is coded.
struct Coding {
  uint32_t levels = 0;
  uint32_t block_width = 0, block_height = 0;  // as powers of two
  uint32_t style = 0;
  bool is_reversible = false;
  std::array<uint8_t, max_levels + 1> precincts{};  // by resolution: height << 4 | width
  bool is_own = false;                              // by a COC, which a COD does not change

  // Precincts of all resolutions, or `most` + 1 for more than that.
  uint64_t count_precincts(Interval x, Interval y, uint64_t most) const;
  // About as many code-blocks as there are, in the same way.
  uint64_t count_blocks(Interval x, Interval y, uint64_t most) const;
};

// How a tile is coded.
struct TileCoding {
  uint32_t layers = 0;  // 0: nothing read yet
  uint32_t order = 0;
  bool has_transform = false;
  bool has_packet_markers = false;
  std::array<Coding, max_components> components;

  void read_cod(Bytes content);
  void read_coc(Bytes content, size_t component_count);
};

struct Quantization {
  uint32_t style = 0;
  uint32_t guard_bits = 0;
  std::vector<uint32_t> exponents;  // the lowest band, then three by three

  void read(Bytes content);
};

}  // namespace iac::j2k
