#include "iac/codec/j2k_codestream.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "iac/codec/j2k_reader.h"

namespace iac::j2k {
namespace {

enum Marker : uint32_t {
  SOC = 0xFF4F,
  CAP = 0xFF50,
  SIZ = 0xFF51,
  COD = 0xFF52,
  COC = 0xFF53,
  TLM = 0xFF55,
  PRF = 0xFF56,
  PLM = 0xFF57,
  PLT = 0xFF58,
  CPF = 0xFF59,
  QCD = 0xFF5C,
  QCC = 0xFF5D,
  RGN = 0xFF5E,
  POC = 0xFF5F,
  PPM = 0xFF60,
  PPT = 0xFF61,
  CRG = 0xFF63,
  COM = 0xFF64,
  SOT = 0xFF90,
  SOD = 0xFF93,
  EOC = 0xFFD9,
};

constexpr size_t tile_part_header = 14;  // SOT and SOD

uint64_t divide_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

struct Interval {
  uint64_t from, to;

  uint64_t size() const { return to > from ? to - from : 0; }
  Interval divided(uint64_t by) const { return {divide_up(from, by), divide_up(to, by)}; }
};

// How a component is coded.
struct Coding {
  uint32_t levels = 0;
  uint32_t block_width = 0, block_height = 0;  // as powers of two
  uint32_t style = 0;
  bool is_reversible = false;
  std::array<uint8_t, max_levels + 1> precincts{};  // by resolution: height << 4 | width
  bool is_own = false;                              // by a COC, which a COD does not change
};

struct Tile {
  uint32_t layers = 0;
  std::array<Coding, max_components> coding;
};

struct Quantization {
  uint32_t style = 0;
  std::vector<uint32_t> exponents;
};

class Walk {
 public:
  explicit Walk(Bytes bytes) : bytes_(bytes), reader_(bytes) {}

  Codestream run() {
    if (reader_.u16() != SOC || reader_.u16() != SIZ) throw bad("payload is not a codestream");
    read_size(segment());
    read_main_header();
    read_tile_parts();
    for (const Parts& parts : parts_) {
      if (parts.seen == 0 || parts.seen < parts.claimed) throw bad("a tile is missing or not whole");
    }
    stream_.bytes = bytes_.first(reader_.position());
    stream_.is_ht = (styles_ & 0x40) != 0;
    stream_.is_reversible = main_.coding[0].is_reversible;
    if (stream_.is_ht) describe_ht();
    return std::move(stream_);
  }

 private:
  Bytes segment() {
    const uint32_t length = reader_.u16();
    if (length < 2) throw bad("a marker segment has an impossible length");
    return reader_.take(length - 2);
  }

  uint64_t tiles() const { return tiles_across_ * tiles_down_; }

  void read_size(Bytes content) {
    Reader reader(content);
    reader.u16();
    const uint64_t x1 = reader.u32(), y1 = reader.u32(), x0 = reader.u32(), y0 = reader.u32();
    tile_width_ = reader.u32();
    tile_height_ = reader.u32();
    tile_x0_ = reader.u32();
    tile_y0_ = reader.u32();
    x_ = {x0, x1};
    y_ = {y0, y1};
    const uint32_t count = reader.u16();
    if (x_.size() == 0 || y_.size() == 0) throw bad("the image has no pixels");
    // OpenJPEG computes with signed 32 bits.
    if (std::max(x1, y1) > INT32_MAX) throw bad("the image is too large");
    if (tile_width_ == 0 || tile_height_ == 0 || tile_x0_ > x0 || tile_y0_ > y0 ||
        tile_x0_ + tile_width_ <= x0 || tile_y0_ + tile_height_ <= y0) {
      throw bad("tiles do not cover the image");
    }
    if (count == 0 || count > max_components) {
      throw bad("image of " + std::to_string(count) + " components is not supported");
    }
    if (content.size() != 36 + 3 * count) throw bad("the SIZ marker has a wrong length");
    for (uint32_t i = 0; i < count; ++i) read_component(reader);
    tiles_across_ = divide_up(x1 - tile_x0_, tile_width_);
    tiles_down_ = divide_up(y1 - tile_y0_, tile_height_);
    if (tiles() > 65535 || tiles() > bytes_.size() / tile_part_header) {
      throw bad("the image claims more tiles than the payload can hold");
    }
    parts_.assign(tiles(), {});
  }

  void read_component(Reader& reader) {
    Component component;
    const uint32_t depth = reader.u8();
    component.precision = (depth & 0x7F) + 1;
    component.is_signed = (depth & 0x80) != 0;
    component.dx = reader.u8();
    component.dy = reader.u8();
    if (component.dx == 0 || component.dy == 0) throw bad("a component has no samples");
    const Interval x = x_.divided(component.dx), y = y_.divided(component.dy);
    if (x.size() == 0 || y.size() == 0) throw bad("a component has no samples");
    component.x0 = static_cast<uint32_t>(x.from);
    component.y0 = static_cast<uint32_t>(y.from);
    component.width = static_cast<uint32_t>(x.size());
    component.height = static_cast<uint32_t>(y.size());
    stream_.components.push_back(component);
  }

  void read_main_header() {
    bool has_quantization = false;
    for (;;) {
      const uint32_t marker = reader_.u16();
      if (marker == SOT) break;
      const size_t at = reader_.position();
      const Bytes content = segment();
      switch (marker) {
        case COD:
          if (main_.layers != 0) throw bad("two COD markers in the header");
          read_coding(content, main_);
          stream_.has_transform = std::to_integer<int>(content[4]) == 1;
          stream_.transform_at = at + 6;
          check_transform();
          break;
        case COC:
          read_component_coding(content, main_);
          break;
        case QCD:
          if (has_quantization) throw bad("two QCD markers in the header");
          has_quantization = true;
          read_quantization(content);
          break;
        case COM:
          stream_.has_comment = true;
          break;
        case CAP:
          has_capabilities_ = true;
          break;
        case QCC:
        case RGN:
        case POC:
        case PPM:
        case CRG:
          has_unusual_marker_ = true;
          break;
        case TLM:
        case PRF:
        case PLM:
        case CPF:
          break;
        default:
          throw unexpected(marker);
      }
    }
    if (main_.layers == 0 || !has_quantization) throw bad("the header lacks a COD or QCD marker");
  }

  static Error unexpected(uint32_t marker) {
    return bad("marker " + std::to_string(marker) + " is damaged or not supported");
  }

  void check_transform() const {
    if (!stream_.has_transform) return;
    const auto& c = stream_.components;
    for (size_t i = 0; i < 3; ++i) {
      if (c.size() < 3 || c[i].dx != c[0].dx || c[i].dy != c[0].dy) {
        throw bad("a colour transform needs three components of equal size");
      }
    }
  }

  void read_coding(Bytes content, Tile& tile) {
    Reader reader(content);
    const uint32_t style = reader.u8();
    const uint32_t order = reader.u8();
    const uint32_t layers = reader.u16();
    const uint32_t transform = reader.u8();
    if (style > 7 || order > 4 || layers == 0 || transform > 1) {
      throw bad("the COD marker has impossible values");
    }
    has_packet_markers_ |= (style & 6) != 0;
    order_ = order;
    tile.layers = layers;
    const Coding coding = coding_of(reader, (style & 1) != 0);
    for (Coding& each : tile.coding) {
      if (!each.is_own) each = coding;
    }
  }

  void read_component_coding(Bytes content, Tile& tile) {
    has_unusual_marker_ = true;
    Reader reader(content);
    const uint32_t component = reader.u8();
    const uint32_t style = reader.u8();
    if (component >= stream_.components.size() || style > 1) {
      throw bad("a COC marker has impossible values");
    }
    tile.coding[component] = coding_of(reader, style == 1);
    tile.coding[component].is_own = true;
  }

  Coding coding_of(Reader& reader, bool has_precincts) {
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
    styles_ |= coding.style;
    return coding;
  }

  void read_quantization(Bytes content) {
    Reader reader(content);
    quantization_.style = reader.u8();
    while (reader.left() > 0) {
      const bool is_long = (quantization_.style & 31) != 0;
      quantization_.exponents.push_back(is_long ? reader.u16() >> 11 : reader.u8() >> 3);
    }
  }

  void read_tile_parts() {
    uint32_t marker = SOT;
    while (marker == SOT) {
      read_tile_part();
      marker = reader_.u16();
    }
    if (marker != EOC) throw bad("a tile part is not followed by another or the end");
  }

  void read_tile_part() {
    const size_t start = reader_.position() - 2;
    Reader sot(segment());
    const uint32_t index = sot.u16();
    uint64_t length = sot.u32();
    const uint32_t part = sot.u8(), parts = sot.u8();
    if (sot.left() > 0 || index >= tiles()) throw bad("a tile part is not of this image");
    if (part != parts_[index].seen) throw bad("tile parts are missing or not in order");
    ++parts_[index].seen;
    parts_[index].claimed = std::max(parts_[index].claimed, parts);
    has_tile_parts_ |= part > 0;
    if (length == 0) {  // up to the end
      length = length_to_end(start);
      is_open_ended_ = true;
    }
    if (length < tile_part_header || length > bytes_.size() - start) {
      throw bad("a tile part reaches past the end of the payload");
    }
    read_tile_header(index, part == 0);
    if (reader_.position() > start + length) throw bad("a tile part is shorter than its header");
    stream_.bodies.push_back(reader_.take(start + length - reader_.position()));
  }

  size_t length_to_end(size_t start) const {
    size_t end = bytes_.size();
    if (end > 0 && bytes_[end - 1] == std::byte{0}) --end;  // padding to an even length
    return end - start < 2 ? 0 : end - start - 2;
  }

  void read_tile_header(uint32_t index, bool is_first) {
    std::optional<Tile> own;
    for (uint32_t marker = reader_.u16(); marker != SOD; marker = reader_.u16()) {
      const Bytes content = segment();
      if (marker == PLT || marker == COM) continue;
      has_unusual_marker_ = true;
      if (marker == POC || marker == PPT) continue;
      if (!is_first) throw unexpected(marker);
      if (marker == COD || marker == COC) {
        if (!own.has_value()) own = main_;
        marker == COD ? read_coding(content, *own) : read_component_coding(content, *own);
      } else if (marker != QCD && marker != QCC && marker != RGN) {
        throw unexpected(marker);
      }
    }
    if (is_first) count_packets(index, own.has_value() ? *own : main_);
  }

  // A packet takes a byte at least, so that layers and precincts are limited by the payload: the
  // libraries spend time and memory on each.
  void count_packets(uint32_t index, const Tile& tile) {
    const auto [x, y] = area_of(index);
    smallest_side_ = std::min({smallest_side_, x.size(), y.size()});
    for (size_t c = 0; c < stream_.components.size(); ++c) {
      const Component& component = stream_.components[c];
      const Coding& coding = tile.coding[c];
      const Interval cx = x.divided(component.dx), cy = y.divided(component.dy);
      for (uint32_t r = 0; r <= coding.levels; ++r) {
        const uint64_t scale = uint64_t{1} << (coding.levels - r);
        const uint64_t count = precincts(cx.divided(scale), coding.precincts[r] & 15) *
                               precincts(cy.divided(scale), coding.precincts[r] >> 4);
        if (count > bytes_.size()) throw too_many_packets();
        packets_ += count * tile.layers;
      }
    }
    if (packets_ > bytes_.size()) throw too_many_packets();
  }

  static Error too_many_packets() { return bad("the image claims more packets than there are"); }

  static uint64_t precincts(Interval side, uint32_t exponent) {
    return side.size() == 0 ? 0 : ((side.to - 1) >> exponent) - (side.from >> exponent) + 1;
  }

  std::pair<Interval, Interval> area_of(uint32_t tile) const {
    const uint64_t left = tile_x0_ + tile % tiles_across_ * tile_width_;
    const uint64_t top = tile_y0_ + tile / tiles_across_ * tile_height_;
    return {{std::max(left, x_.from), std::min(left + tile_width_, x_.to)},
            {std::max(top, y_.from), std::min(top + tile_height_, y_.to)}};
  }

  void describe_ht() {
    // Their bytes could not be told from damage.
    if (has_packet_markers_ || main_.layers != 1) {
      throw bad("HT with packet markers or several layers is not supported");
    }
    if (!is_plain()) return;
    const Coding& coding = main_.coding[0];
    PlainHt plain;
    plain.body = stream_.bodies[0];
    plain.width = stream_.components[0].width;
    plain.height = stream_.components[0].height;
    plain.components = static_cast<uint32_t>(stream_.components.size());
    plain.levels = coding.levels;
    plain.block_width = coding.block_width;
    plain.block_height = coding.block_height;
    plain.precincts = coding.precincts;
    for (const uint32_t exponent : quantization_.exponents) {
      plain.planes.push_back(exponent + (quantization_.style >> 5) - 1);
    }
    plain.by_component = order_ >= 3;
    stream_.plain_ht = plain;
  }

  bool is_plain() const {
    const Coding& coding = main_.coding[0];
    const bool has_offset = x_.from != 0 || y_.from != 0 || tile_x0_ != 0 || tile_y0_ != 0;
    if (has_unusual_marker_ || has_tile_parts_ || is_open_ended_ || has_offset || tiles() != 1 ||
        !has_capabilities_ || styles_ != 0x40) {
      return false;
    }
    // Its scratch memory grows with the number of blocks that a precinct may have.
    if (coding.block_width < 4 || coding.block_height < 4) return false;
    if (coding.levels > static_cast<uint32_t>(std::bit_width(smallest_side_)) - 1) return false;
    for (const Component& component : stream_.components) {
      if (component.dx != 1 || component.dy != 1) return false;
    }
    const bool has_one_precinct = packets_ == stream_.components.size() * (coding.levels + 1);
    return has_one_precinct && has_plain_quantization(coding);
  }

  bool has_plain_quantization(const Coding& coding) const {
    const uint32_t style = quantization_.style & 31, guard = quantization_.style >> 5;
    if (style != (coding.is_reversible ? 0 : 2)) return false;
    if (quantization_.exponents.size() != 3 * coding.levels + 1) return false;
    // Bits of a sample, from none to 30.
    return std::all_of(quantization_.exponents.begin(), quantization_.exponents.end(),
                       [&](uint32_t exponent) { return exponent + guard - 1 <= 30; });
  }

  struct Parts {
    uint32_t seen = 0, claimed = 0;
  };

  Bytes bytes_;
  Reader reader_;
  Codestream stream_;
  Interval x_{}, y_{};
  uint64_t tile_width_ = 0, tile_height_ = 0, tile_x0_ = 0, tile_y0_ = 0;
  uint64_t tiles_across_ = 0, tiles_down_ = 0;
  std::vector<Parts> parts_;  // of each tile
  Tile main_;
  Quantization quantization_;
  uint64_t packets_ = 0;
  uint64_t smallest_side_ = UINT64_MAX;
  uint32_t styles_ = 0;
  uint32_t order_ = 0;
  bool has_capabilities_ = false;
  bool has_unusual_marker_ = false;
  bool has_packet_markers_ = false;
  bool has_tile_parts_ = false;
  bool is_open_ended_ = false;
};

}  // namespace

Codestream read_codestream(Bytes bytes) { return Walk(bytes).run(); }

uint32_t decompositions(uint32_t width, uint32_t height) {
  return std::min<uint32_t>(5, std::bit_width(std::min(width, height)) - 1);
}

}  // namespace iac::j2k
