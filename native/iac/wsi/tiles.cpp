#include "iac/wsi/tiles.h"

#include <cstring>
#include <string>
#include <vector>

#include "iac/codec/no_image.h"
#include "iac/error.h"

namespace iac::wsi {
namespace {

constexpr int64_t tile_kind = 0;

// The upper left of tiles, which are all of one size.
class CutTiles final : public Codec {
 public:
  CutTiles(const Codec& codec, const Grid& grid, int64_t width, int64_t height)
      : codec_(codec),
        grid_(grid),
        width_(static_cast<uint32_t>(width)),
        height_(static_cast<uint32_t>(height)) {}

  std::string_view name() const override { return codec_.name(); }
  std::string parameters() const override { return codec_.parameters(); }
  bool gives_images() const override { return true; }

  SizeHint decoded_size(Bytes payload) const override {
    SizeHint hint = codec_.decoded_size(payload);
    ImageShape& image = hint.image;
    if (image.channels == 0) return hint;
    if (image.width != grid_.tile_width || image.height != grid_.tile_height) {
      throw bad("the tile is " + describe(image) + ", the header says " +
                std::to_string(grid_.tile_height) + "x" + std::to_string(grid_.tile_width));
    }
    image.width = width_;
    image.height = height_;
    hint.bytes = image.bytes();
    return hint;
  }

  std::optional<size_t> decode(Bytes payload, Target& target) const override {
    const SizeHint whole = codec_.decoded_size(payload);
    const ImageShape& image = whole.image;
    if (image.channels == 0 || (image.width == width_ && image.height == height_)) {
      return codec_.decode(payload, target);
    }
    const SizeHint cut = decoded_size(payload);
    if (!target.grow(cut.bytes)) return std::nullopt;
    std::vector<std::byte> pixels(whole.bytes);
    Target all(pixels.data(), pixels.size());
    if (codec_.decode(payload, all) != whole.bytes) throw bad("the tile is not of its size");
    const size_t pitch = whole.bytes / image.height, row = cut.bytes / height_;
    for (uint32_t y = 0; y < height_; ++y) {
      std::memcpy(target.data() + y * row, pixels.data() + y * pitch, row);
    }
    return cut.bytes;
  }

 private:
  const Codec& codec_;
  const Grid& grid_;
  uint32_t width_, height_;
};

}  // namespace

bool is_slide(const Pack& pack) { return pack.header().payload_type == "wsi_image"; }

TileDecoders::TileDecoders(const Pack& pack, std::span<const int64_t> rows)
    : grid_(read_grid(pack)),
      kinds_(TableValues::find(*pack.index(), "kind", rows)),
      widths_(TableValues::find(*pack.index(), "valid_width", rows)),
      heights_(TableValues::find(*pack.index(), "valid_height", rows)) {}

const Codec& TileDecoders::decoder(int64_t row, const Codec& codec, bool images) {
  if (!codec.gives_images()) return images ? no_image() : codec;
  const auto kind = kinds_ ? kinds_->integer(row) : std::nullopt;
  const auto width = widths_ ? widths_->integer(row) : std::nullopt;
  const auto height = heights_ ? heights_->integer(row) : std::nullopt;
  if (kind != tile_kind || !width || !height) return codec;
  if (*width < 1 || *height < 1 || *width > grid_.tile_width || *height > grid_.tile_height) {
    throw Error(Error::Kind::pack,
                "its valid size is " + std::to_string(*width) + " x " + std::to_string(*height));
  }
  auto& cut = cut_[{&codec, *width, *height}];
  if (!cut) {
    cut = std::make_unique<CutTiles>(codec, grid_, *width, *height);
  }
  return *cut;
}

}  // namespace iac::wsi
