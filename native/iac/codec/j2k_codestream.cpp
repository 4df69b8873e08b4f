#include "iac/codec/j2k_codestream.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "iac/codec/j2k_coding.h"
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
// OpenJPEG takes half a kilobyte for each code-block, also of those without data. So many there may
// be of these, a size of 32 by 32 always fits, besides some for each byte of the payload.
constexpr uint64_t free_blocks = 1 << 18, blocks_a_byte = 8;

class Walk {
 public:
  explicit Walk(Bytes bytes) : bytes_(bytes), reader_(bytes) {}

  Codestream run() {
    if (reader_.u16() != SOC || reader_.u16() != SIZ) throw bad("payload is not a codestream");
    read_size(segment());
    read_main_header();
    read_tile_parts();
    for (const Parts& parts : parts_) {
      if (parts.seen == 0 || parts.seen < parts.claimed)
        throw bad("a tile is missing or not whole");
    }
    stream_.bytes = bytes_.first(reader_.position());
    stream_.is_ht = (styles_ & 0x40) != 0;
    stream_.is_reversible = main_.components[0].is_reversible;
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
    tiles_across_ = (x1 - tile_x0_ + tile_width_ - 1) / tile_width_;
    tiles_down_ = (y1 - tile_y0_ + tile_height_ - 1) / tile_height_;
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
          main_.read_cod(content);
          stream_.has_transform = main_.has_transform;
          stream_.transform_at = at + 6;
          break;
        case COC:
          has_unusual_marker_ = true;
          main_.read_coc(content, stream_.components.size());
          break;
        case QCD:
          if (has_quantization) throw bad("two QCD markers in the header");
          has_quantization = true;
          quantization_.read(content);
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

  void check_transform(const TileCoding& tile) const {
    if (!tile.has_transform) return;
    const auto& c = stream_.components;
    for (size_t i = 0; i < 3; ++i) {
      if (c.size() < 3 || c[i].dx != c[0].dx || c[i].dy != c[0].dy) {
        throw bad("a colour transform needs three components of equal size");
      }
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
    std::optional<TileCoding> own;
    for (uint32_t marker = reader_.u16(); marker != SOD; marker = reader_.u16()) {
      const Bytes content = segment();
      if (marker == PLT || marker == COM) continue;
      has_unusual_marker_ = true;
      if (marker == POC || marker == PPT) continue;
      if (!is_first) throw unexpected(marker);
      if (marker == COD || marker == COC) {
        if (!own.has_value()) own = main_;
        if (marker == COD) {
          own->read_cod(content);
        } else {
          own->read_coc(content, stream_.components.size());
        }
      } else if (marker != QCD && marker != QCC && marker != RGN) {
        throw unexpected(marker);
      }
    }
    if (!is_first) return;
    const TileCoding& tile = own.has_value() ? *own : main_;
    check_transform(tile);
    count_packets(index, tile);
  }

  // A packet takes a byte at least, so that layers and precincts are limited by the payload: the
  // libraries spend time and memory on each, and on code-blocks.
  void count_packets(uint32_t index, const TileCoding& tile) {
    const auto [x, y] = area_of(index);
    smallest_side_ = std::min({smallest_side_, x.size(), y.size()});
    for (size_t c = 0; c < stream_.components.size(); ++c) {
      const Component& component = stream_.components[c];
      const Coding& coding = tile.components[c];
      styles_ |= coding.style;
      const Interval own_x = x.divided(component.dx), own_y = y.divided(component.dy);
      packets_ += tile.layers * coding.count_precincts(own_x, own_y, bytes_.size());
      blocks_ += coding.count_blocks(own_x, own_y, max_blocks());
    }
    most_layers_ = std::max(most_layers_, tile.layers);
    has_packet_markers_ |= tile.has_packet_markers;
    if (packets_ > bytes_.size()) throw bad("the image claims more packets than there are");
    if (blocks_ > max_blocks()) throw bad("the image claims far more code-blocks than there are");
  }

  uint64_t max_blocks() const { return free_blocks + blocks_a_byte * bytes_.size(); }

  std::pair<Interval, Interval> area_of(uint32_t tile) const {
    const uint64_t left = tile_x0_ + tile % tiles_across_ * tile_width_;
    const uint64_t top = tile_y0_ + tile / tiles_across_ * tile_height_;
    return {{std::max(left, x_.from), std::min(left + tile_width_, x_.to)},
            {std::max(top, y_.from), std::min(top + tile_height_, y_.to)}};
  }

  void describe_ht() {
    // Their bytes could not be told from damage.
    if (has_packet_markers_ || most_layers_ != 1) {
      throw bad("HT with packet markers or several layers is not supported");
    }
    if (!is_plain()) return;
    const Coding& coding = main_.components[0];
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
      plain.planes.push_back(exponent + quantization_.guard_bits - 1);
    }
    plain.by_component = main_.order >= 3;
    stream_.plain_ht = plain;
  }

  bool is_plain() const {
    const Coding& coding = main_.components[0];
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
    if (quantization_.style != (coding.is_reversible ? 0 : 2)) return false;
    if (quantization_.exponents.size() != 3 * coding.levels + 1) return false;
    // Bits of a sample, from none to 30.
    return std::all_of(
        quantization_.exponents.begin(), quantization_.exponents.end(),
        [&](uint32_t exponent) { return exponent + quantization_.guard_bits - 1 <= 30; });
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
  TileCoding main_;
  Quantization quantization_;
  uint64_t packets_ = 0, blocks_ = 0;
  uint32_t most_layers_ = 0;
  uint64_t smallest_side_ = UINT64_MAX;
  uint32_t styles_ = 0;
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
