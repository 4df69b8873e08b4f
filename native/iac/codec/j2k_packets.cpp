#include "iac/codec/j2k_packets.h"

#include <algorithm>
#include <vector>

#include "iac/codec/j2k_reader.h"

namespace iac::j2k {
namespace {

// Lengths of code-blocks that the coding of HT allows.
constexpr uint32_t max_cleanup = 65534, max_refinement = 2046, max_suffix = 4079;

uint32_t value_of(std::byte byte) { return std::to_integer<uint32_t>(byte); }

Error damaged() { return bad("the packets are damaged"); }

// Nothing above FF8F stands in a tile part's body, nor does it end in FF.
void check_body(Bytes body) {
  const std::byte* at = body.data();
  const std::byte* const end = at + body.size();
  while (at != end && (at = static_cast<const std::byte*>(
                           std::memchr(at, 0xFF, static_cast<size_t>(end - at)))) != nullptr) {
    if (++at == end || value_of(*at) > 0x8F) throw damaged();
  }
}

// Bits of a packet header: after a byte FF the next one has seven.
class Bits {
 public:
  explicit Bits(Reader& reader) : reader_(reader) {}

  uint32_t bit() {
    if (left_ == 0) next();
    return byte_ >> --left_ & 1;
  }

  uint32_t bits(uint32_t count) {
    uint32_t value = 0;
    while (count-- > 0) value = value << 1 | bit();
    return value;
  }

  uint32_t ones(uint32_t most) {
    uint32_t count = 0;
    while (bit() == 1) {
      if (++count > most) throw damaged();
    }
    return count;
  }

  void align() {
    left_ = 0;
    if (byte_ == 0xFF) next();
    left_ = 0;
  }

 private:
  void next() {
    const bool is_stuffed = byte_ == 0xFF;
    byte_ = reader_.u8();
    if (is_stuffed && byte_ > 0x7F) throw damaged();
    left_ = is_stuffed ? 7 : 8;
  }

  Reader& reader_;
  uint32_t byte_ = 0;
  uint32_t left_ = 0;
};

// Values at the leaves of a tree that tells at each node by how much the leaves below are at least.
class TagTree {
 public:
  TagTree(uint32_t width, uint32_t height) {
    for (;; width = (width + 1) / 2, height = (height + 1) / 2) {
      levels_.push_back({width, std::vector<Node>(size_t{width} * height)});
      if (width * height == 1) break;
    }
  }

  // The value at a leaf as far as `limit`, which stands for anything above it, too.
  uint32_t value(Bits& bits, uint32_t x, uint32_t y, uint32_t limit) {
    uint32_t low = 0;
    for (size_t level = levels_.size(); level-- > 0;) {
      Node& node = levels_[level].nodes[(y >> level) * size_t{levels_[level].width} + (x >> level)];
      node.value = std::max(node.value, low);
      while (!node.is_known && node.value < limit) {
        if (bits.bit() == 1) {
          node.is_known = true;
        } else {
          ++node.value;
        }
      }
      low = node.value;
    }
    return low;
  }

 private:
  struct Node {
    uint32_t value = 0;
    bool is_known = false;
  };
  struct Level {
    uint32_t width;
    std::vector<Node> nodes;
  };
  std::vector<Level> levels_;
};

struct Block {
  uint32_t cleanup, refinement;
};

struct Band {
  uint32_t blocks_across, blocks_down;
  uint32_t planes;
};

class Packets {
 public:
  explicit Packets(const PlainHt& stream) : stream_(stream), reader_(stream.body) {}

  void run() {
    const uint32_t resolutions = stream_.levels + 1;
    const uint32_t outer = stream_.by_component ? stream_.components : resolutions;
    const uint32_t inner = stream_.by_component ? resolutions : stream_.components;
    for (uint32_t i = 0; i < outer; ++i) {
      for (uint32_t j = 0; j < inner; ++j) packet(stream_.by_component ? j : i);
    }
    if (reader_.left() > 0) throw damaged();
  }

 private:
  void packet(uint32_t resolution) {
    Bits bits(reader_);
    blocks_.clear();
    if (bits.bit() == 1) {
      const uint32_t first = resolution == 0 ? 0 : 1, last = resolution == 0 ? 0 : 3;
      for (uint32_t band = first; band <= last; ++band) header(bits, band_of(resolution, band));
    }
    bits.align();
    for (const Block& block : blocks_) body(block);
  }

  // 0: low in both directions; 1, 2, 3: high horizontally, vertically, in both.
  Band band_of(uint32_t resolution, uint32_t band) const {
    const uint32_t depth = stream_.levels - resolution + (resolution > 0 ? 1 : 0);
    const uint32_t cut = resolution > 0 ? 1 : 0;
    const uint32_t precinct = stream_.precincts[resolution];
    const auto blocks = [&](uint64_t side, bool is_high, uint32_t exponent) {
      const uint64_t unit = uint64_t{1} << depth, shift = is_high ? unit / 2 : 0;
      const uint64_t samples = (side - shift + unit - 1) >> depth;
      return static_cast<uint32_t>((samples + (uint64_t{1} << exponent) - 1) >> exponent);
    };
    return {blocks(stream_.width, (band & 1) != 0,
                   std::min(stream_.block_width, (precinct & 15) - cut)),
            blocks(stream_.height, (band & 2) != 0,
                   std::min(stream_.block_height, (precinct >> 4) - cut)),
            stream_.planes[resolution == 0 ? 0 : 3 * (resolution - 1) + band]};
  }

  void header(Bits& bits, const Band& band) {
    TagTree inclusion(band.blocks_across, band.blocks_down);
    TagTree missing(band.blocks_across, band.blocks_down);
    for (uint32_t y = 0; y < band.blocks_down; ++y) {
      for (uint32_t x = 0; x < band.blocks_across; ++x) {
        if (inclusion.value(bits, x, y, 1) == 1) continue;
        if (missing.value(bits, x, y, band.planes + 1) > band.planes) throw damaged();
        blocks_.push_back(lengths(bits));
      }
    }
  }

  static Block lengths(Bits& bits) {
    uint32_t passes = 1 + bits.ones(2);
    if (passes == 3 && bits.bits(2) != 0) throw damaged();
    const uint32_t length_bits = 3 + bits.ones(16);
    Block block{bits.bits(length_bits), 0};
    if (passes > 1) block.refinement = bits.bits(length_bits + (passes == 3 ? 1 : 0));
    if (block.cleanup < 2 || block.cleanup > max_cleanup || block.refinement > max_refinement) {
      throw damaged();
    }
    return block;
  }

  // The last bytes say where in the cleanup pass the part begins that is read backwards.
  void body(const Block& block) {
    const Bytes cleanup = reader_.take(block.cleanup);
    const uint32_t suffix =
        value_of(cleanup[block.cleanup - 1]) << 4 | (value_of(cleanup[block.cleanup - 2]) & 15);
    if (suffix < 2 || suffix > std::min(block.cleanup, max_suffix)) throw damaged();
    reader_.take(block.refinement);
  }

  const PlainHt& stream_;
  Reader reader_;
  std::vector<Block> blocks_;
};

}  // namespace

void check_bodies(const Codestream& stream) {
  for (const Bytes body : stream.bodies) check_body(body);
}

void check_packets(const PlainHt& stream) { Packets(stream).run(); }

}  // namespace iac::j2k
