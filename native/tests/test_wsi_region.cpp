#include <catch2/catch.hpp>

#include "iac/wsi/region.h"
#include "tests/images.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

namespace {

std::string header_of(const std::string& codec) {
  return R"({"payload_type": "wsi_image", "codec": ")" + codec + R"("})";
}

// Tiles of one shape, and a pack of them.
struct Tiles {
  ImageShape shape;
  std::vector<std::string> pixels;
  std::shared_ptr<const Pack> pack;

  Tiles(const ImageShape& shape, size_t count, std::mt19937_64& random) : shape(shape) {
    const auto codec = make_codec("jpegls", "{}");
    std::vector<std::string> stored;
    for (size_t i = 0; i < count; ++i) {
      pixels.push_back(pixels_of(shape, random));
      stored.push_back(encoded(*codec, shape, pixels.back()));
    }
    pack = open_bytes(parts_of(stored, header_of("jpegls")).bytes());
  }
};

// A region between guards, all of one byte.
struct Canvas {
  static constexpr size_t guard = 4096;
  int64_t height, width;
  uint64_t pixel;
  std::string memory;

  Canvas(int64_t height, int64_t width, const ImageShape& tile)
      : height(height), width(width), pixel(tile.channels * size_of(tile.type)) {
    memory.assign(2 * guard + static_cast<uint64_t>(height * width) * pixel, '\x5A');
  }
  wsi::Region region() {
    return {reinterpret_cast<std::byte*>(memory.data()) + guard, height, width};
  }
  // Pixel by pixel.
  void put(const wsi::RegionTile& tile, const ImageShape& shape, const std::string& pixels) {
    for (int64_t y = 0; y < tile.valid_height; ++y) {
      for (int64_t x = 0; x < tile.valid_width; ++x) {
        const int64_t to_y = tile.y + y, to_x = tile.x + x;
        if (to_y < 0 || to_y >= height || to_x < 0 || to_x >= width) continue;
        memory.replace(guard + static_cast<uint64_t>(to_y * width + to_x) * pixel, pixel, pixels,
                       static_cast<uint64_t>(y * shape.width + x) * pixel, pixel);
      }
    }
  }
};

ReadOptions options_of(unsigned workers) {
  ReadOptions options;
  options.workers = workers;
  return options;
}

Thrown refusal(const Pack& pack, const ImageShape& shape, const ReadOptions& options = {}) {
  Canvas canvas(10, 10, shape);
  const wsi::RegionTile tile{0, 0, 0, shape.height, shape.width};
  const Canvas before = canvas;
  const Thrown thrown =
      thrown_by([&] { wsi::read_region(pack, {&tile, 1}, shape, canvas.region(), options); });
  CHECK(canvas.memory == before.memory);
  return thrown;
}

}  // namespace

TEST_CASE("tiles lie in a region where they are put, and nothing else of it changes") {
  std::mt19937_64 random(1);
  for (const PixelType type : {PixelType::uint8, PixelType::uint16}) {
    for (const uint32_t channels : {1u, 3u}) {
      const Tiles tiles({9, 13, channels, type}, 6, random);
      const auto [tile_height, tile_width, c, t] = tiles.shape;
      for (int round = 0; round < 200; ++round) {
        const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
        // Every third is as wide as a tile, and whole tiles decode into it without a copy.
        const int64_t width = round % 3 == 0 ? tile_width : 1 + below(50);
        Canvas found(1 + below(40), width, tiles.shape);
        const int64_t top = below(40) - 20, left = round % 6 == 0 ? 0 : below(60) - 30;
        std::vector<wsi::RegionTile> some;
        for (int64_t i = 0; i < 6; ++i) {
          const bool is_edge = below(2) == 0;
          some.push_back({i, top + i / 2 * tile_height, left + i % 2 * tile_width,
                          is_edge ? static_cast<uint32_t>(below(tile_height + 1)) : tile_height,
                          is_edge ? static_cast<uint32_t>(below(tile_width + 1)) : tile_width});
        }
        Canvas expected = found;
        for (const wsi::RegionTile& tile : some) {
          expected.put(tile, tiles.shape, tiles.pixels[static_cast<size_t>(tile.row)]);
        }
        wsi::read_region(*tiles.pack, some, tiles.shape, found.region(), options_of(1 + round % 2));
        REQUIRE(found.memory == expected.memory);
      }
    }
  }
}

TEST_CASE("places as far away as numbers go, and sizes beyond the tile's, stay inside") {
  std::mt19937_64 random(2);
  const Tiles tiles({9, 13, 3, PixelType::uint8}, 1, random);
  for (const int64_t far : {INT64_MIN, INT64_MIN + 1, int64_t{-10}, int64_t{0}, INT64_MAX}) {
    for (const int64_t other : {INT64_MIN, int64_t{-14}, int64_t{3}, INT64_MAX}) {
      Canvas found(20, 20, tiles.shape), expected = found;
      const wsi::RegionTile tile{0, far, other, UINT32_MAX, UINT32_MAX};
      if (far == 0 && other == 3) expected.put({0, 0, 3, 9, 13}, tiles.shape, tiles.pixels[0]);
      wsi::read_region(*tiles.pack, {&tile, 1}, tiles.shape, found.region(), {});
      REQUIRE(found.memory == expected.memory);
    }
  }
}

TEST_CASE("tiles of another shape than the header's are errors before they are decoded") {
  std::mt19937_64 random(3);
  const Tiles tiles({9, 13, 3, PixelType::uint8}, 1, random);
  for (const ImageShape other : {ImageShape{9, 12, 3}, ImageShape{8, 13, 3}, ImageShape{9, 13, 1},
                                 ImageShape{9, 13, 3, PixelType::uint16}}) {
    const Thrown thrown = refusal(*tiles.pack, other);
    CHECK(thrown.kind == Error::Kind::codec);
    CHECK(thrown.row == 0);
    CHECK(thrown.text == "test.iac: row 0: jpegls: the tile is " + describe(tiles.shape) +
                             ", the header says " + describe(other));
  }
}

TEST_CASE("tiles that are larger than a record may be, or no images, or damaged, are errors") {
  std::mt19937_64 random(4);
  const Tiles tiles({9, 13, 3, PixelType::uint8}, 1, random);
  ReadOptions options;
  options.limits.record_bytes = tiles.shape.bytes();
  Canvas canvas(9, 13, tiles.shape);
  const wsi::RegionTile tile{0, 0, 0, 9, 13};
  wsi::read_region(*tiles.pack, {&tile, 1}, tiles.shape, canvas.region(), options);
  --options.limits.record_bytes;
  const Thrown large = refusal(*tiles.pack, tiles.shape, options);
  CHECK(large.kind == Error::Kind::codec);
  CHECK(contains(large.text, "row 0: decoded record is larger than the limit of 350 bytes"));

  for (const char* codec : {"none", "zstd"}) {
    const auto bytes = open_bytes(parts_of({"no image"}, header_of(codec)).bytes());
    const Thrown none = refusal(*bytes, tiles.shape);
    CHECK(none.kind == Error::Kind::pack);
    CHECK(none.text == "test.iac: row 0: raster_codec decodes to no images");
  }
  const auto damaged = open_bytes(parts_of({"no image"}, header_of("jpegls")).bytes());
  CHECK(contains(refusal(*damaged, tiles.shape).text, "test.iac: row 0: jpegls: "));
  const wsi::RegionTile beyond{1, 0, 0, 9, 13};
  const Thrown index = thrown_by(
      [&] { wsi::read_region(*tiles.pack, {&beyond, 1}, tiles.shape, canvas.region(), {}); });
  CHECK(index.kind == Error::Kind::index);
}

TEST_CASE("the error is that of the first tile that fails, and crc32s are compared on demand") {
  std::mt19937_64 random(5);
  const ImageShape shape{9, 13, 1, PixelType::uint8};
  const std::string payload = encoded(*make_codec("jpegls", "{}"), shape, pixels_of(shape, random));
  PackParts parts = parts_of({payload, "no image", payload, "?"}, header_of("jpegls"));
  parts.data[payload.size() + 10] ^= 1;  // in the third record
  const auto pack = open_bytes(parts.bytes());
  Canvas canvas(9, 52, shape);
  const auto read = [&](std::vector<int64_t> rows, bool verify, unsigned workers) {
    std::vector<wsi::RegionTile> tiles;
    for (const int64_t row : rows) {
      tiles.push_back({row, 0, static_cast<int64_t>(tiles.size()) * 13, 9, 13});
    }
    ReadOptions options = options_of(workers);
    options.verify = verify;
    return thrown_by([&] { wsi::read_region(*pack, tiles, shape, canvas.region(), options); });
  };
  for (const unsigned workers : {1u, 2u}) {
    CHECK_FALSE(read({0}, true, workers).any);
    const Thrown checksum = read({0, 2, 3, 1}, true, workers);
    CHECK(checksum.kind == Error::Kind::checksum);
    CHECK(checksum.row == 2);
    CHECK(read({0, 3, 1, 2}, true, workers).row == 3);
    CHECK(read({2}, false, workers).kind != Error::Kind::checksum);
  }
}
