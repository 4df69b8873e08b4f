#include <catch2/catch.hpp>

#include "iac/wsi/grid.h"
#include "iac/wsi/tiles.h"
#include "tests/images.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

namespace {

std::string header_of(const std::string& width, const std::string& height = "64",
                      const std::string& mpp = "0.5", const std::string& more = "") {
  return R"({"payload_type": "wsi_image", "tile_width": )" + width + R"(, "tile_height": )" +
         height + R"(, "native_mpp_x": )" + mpp + R"(, "native_mpp_y": 0.25)" + more + "}";
}

wsi::Grid grid_of(const std::string& header) {
  return wsi::read_grid(*open_bytes(parts_of({"x"}, header).bytes()));
}

// Why the header is refused.
std::string refusal(const std::string& header) {
  const Thrown thrown = thrown_by([&] { grid_of(header); });
  CHECK(thrown.any);
  CHECK(thrown.kind == Error::Kind::pack);
  return thrown.text;
}

// A pack of a slide, a row a record.
struct SlideParts {
  std::vector<std::string> stored;
  std::vector<std::optional<uint64_t>> kinds, widths, heights;

  void add(std::string payload, std::optional<uint64_t> kind, std::optional<uint64_t> width,
           std::optional<uint64_t> height) {
    stored.push_back(std::move(payload));
    kinds.push_back(kind);
    widths.push_back(width);
    heights.push_back(height);
  }

  std::shared_ptr<const Pack> pack(const std::string& header) const {
    PackParts parts = parts_of(stored, header);
    TestIndex index;
    uint64_t at = 0;
    for (const std::string& record : stored) {
      index.add(at, record.size(), crc32(bytes_of(record)));
      at += record.size();
    }
    auto columns = index.columns();
    columns.push_back({"kind", NANOARROW_TYPE_UINT8, kinds});
    columns.push_back({"valid_width", NANOARROW_TYPE_UINT16, widths});
    columns.push_back({"valid_height", NANOARROW_TYPE_UINT16, heights});
    parts.index = stream_of(columns);
    return open_bytes(parts.bytes());
  }
};

std::string decoded(const Codec& codec, const std::string& payload) {
  const SizeHint hint = codec.decoded_size(bytes_of(payload));
  std::string out(hint.bytes, '\0');
  Target target(reinterpret_cast<std::byte*>(out.data()), out.size());
  const auto size = codec.decode(bytes_of(payload), target);
  REQUIRE(size.has_value());
  CHECK(*size == hint.bytes);
  return out;
}

// The upper left of an image.
std::string cut(const std::string& pixels, const ImageShape& shape, uint32_t width,
                uint32_t height) {
  const size_t sample = shape.channels * size_of(shape.type);
  std::string out;
  for (uint32_t y = 0; y < height; ++y) {
    out += pixels.substr(size_t{y} * shape.width * sample, width * sample);
  }
  return out;
}

}  // namespace

TEST_CASE("the grid of a slide is what its header says") {
  const wsi::Grid grid = grid_of(header_of("512"));
  CHECK((grid.tile_width == 512 && grid.tile_height == 64));
  CHECK((grid.mpp_x == 0.5 && grid.mpp_y == 0.25));
  CHECK(grid.downsamples == std::vector<int64_t>{1});
  const auto levels = R"(, "levels": [{"downsample": 4}, {"downsample": 4294967295}])";
  CHECK(grid_of(header_of("1", "4294967295", "1e-300", levels)).downsamples ==
        std::vector<int64_t>{1, 4, 4294967295});
}

TEST_CASE("headers of slides that say something else are refused by the name of the field") {
  for (const char* width :
       {"0", "-1", "4294967296", "18446744073709551615", "1.5", "512.0", "true", "null", "\"1\""}) {
    INFO(width);
    CHECK(contains(refusal(header_of(width)), "tile_width"));
    CHECK(contains(refusal(header_of("1", width)), "tile_height"));
  }
  for (const char* mpp : {"0", "-0.5", "\"a\"", "null", "true", "[]"}) {
    INFO(mpp);
    CHECK(contains(refusal(header_of("1", "1", mpp)), "native_mpp_x"));
  }
  for (const char* levels : {"null", "{}", "4", "[4]", "[{}]", "[[]]", R"([{"downsample": 0}])",
                             R"([{"downsample": 2}, {"downsample": 2.5}])"}) {
    INFO(levels);
    const std::string more = std::string(R"(, "levels": )") + levels;
    const std::string text = refusal(header_of("1", "1", "1", more));
    CHECK((contains(text, "levels") || contains(text, "downsample")));
  }
  CHECK(contains(refusal("{}"), "tile_width"));
}

TEST_CASE("tiles are cut to their valid size, and what is no tile is not") {
  std::mt19937_64 random(3);
  const ImageShape shape{24, 40, 3, PixelType::uint16};
  const auto codec = make_codec("jpegls", "{}");
  const std::string pixels = pixels_of(shape, random);
  const std::string payload = encoded(*codec, shape, pixels);
  SlideParts parts;
  parts.add(payload, 0, 40, 24);
  parts.add(payload, 0, 1, 1);
  parts.add(payload, 0, 40, 7);
  parts.add(payload, 0, 13, 24);
  parts.add(payload, 3, std::nullopt, std::nullopt);  // an associated image
  parts.add(payload, std::nullopt, 5, 5);
  const auto pack = parts.pack(header_of("40", "24"));
  const std::vector<int64_t> rows{5, 4, 3, 2, 1, 0, 3};
  wsi::TileDecoders decoders(*pack, rows);
  const std::vector<std::pair<uint32_t, uint32_t>> sizes{{40, 24}, {1, 1}, {40, 7}, {13, 24}};
  for (const bool images : {true, false}) {
    for (size_t row = 0; row < sizes.size(); ++row) {
      const auto [width, height] = sizes[row];
      const Codec& tile = decoders.decoder(static_cast<int64_t>(row), *codec, images);
      const ImageShape found = tile.decoded_size(bytes_of(payload)).image;
      CHECK(found == ImageShape{height, width, 3, PixelType::uint16});
      CHECK(decoded(tile, payload) == cut(pixels, shape, width, height));
      CHECK(&tile == &decoders.decoder(static_cast<int64_t>(row), *codec, images));
    }
    CHECK(&decoders.decoder(4, *codec, images) == codec.get());
    CHECK(&decoders.decoder(5, *codec, images) == codec.get());
  }
}

TEST_CASE("records of bytes are no images where images are wanted") {
  SlideParts parts;
  parts.add("{}", 1, std::nullopt, std::nullopt);
  const auto pack = parts.pack(header_of("40", "24"));
  const auto codec = make_codec("none", "{}");
  const std::vector<int64_t> rows{0};
  wsi::TileDecoders decoders(*pack, rows);
  CHECK(&decoders.decoder(0, *codec, false) == codec.get());
  const Codec& none = decoders.decoder(0, *codec, true);
  CHECK(none.decoded_size(bytes_of("{}")).image.channels == 0);
  CHECK(decoded(none, "{}").empty());
}

TEST_CASE("tiles of the longest and the shortest sides") {
  std::mt19937_64 random(4);
  const auto codec = make_codec("jpegls", "{}");
  for (const bool is_wide : {true, false}) {
    const ImageShape shape{is_wide ? 1u : 65535u, is_wide ? 65535u : 1u, 1, PixelType::uint8};
    const std::string pixels = pixels_of(shape, random);
    const std::string payload = encoded(*codec, shape, pixels);
    SlideParts parts;
    parts.add(payload, 0, is_wide ? 65534 : 1, is_wide ? 1 : 65534);
    const auto pack =
        parts.pack(header_of(std::to_string(shape.width), std::to_string(shape.height)));
    const std::vector<int64_t> rows{0};
    wsi::TileDecoders decoders(*pack, rows);
    CHECK(decoded(decoders.decoder(0, *codec, true), payload) == pixels.substr(0, 65534));
  }
}

TEST_CASE("tiles of no size that can be, and payloads of another size than the header's") {
  std::mt19937_64 random(5);
  const ImageShape shape{24, 40, 1, PixelType::uint8};
  const auto codec = make_codec("jpegls", "{}");
  const std::string payload = encoded(*codec, shape, pixels_of(shape, random));
  SlideParts parts;
  for (const auto& [width, height] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, 24}, {40, 0}, {41, 24}, {40, 25}, {65535, 65535}}) {
    parts.add(payload, 0, width, height);
  }
  parts.add(payload, 0, 40, 24);
  std::vector<int64_t> rows{0, 1, 2, 3, 4, 5};
  const auto pack = parts.pack(header_of("40", "24"));
  wsi::TileDecoders decoders(*pack, rows);
  for (int64_t row = 0; row < 5; ++row) {
    const Thrown thrown = thrown_by([&] { decoders.decoder(row, *codec, true); });
    CHECK(thrown.kind == Error::Kind::pack);
    CHECK(contains(thrown.text, "its valid size is "));
  }
  // The payload is 40 x 24, the header says 64 x 64, of which 50 x 64 is slide.
  SlideParts other;
  other.add(payload, 0, 50, 64);
  other.add("no image", 0, 50, 64);
  rows = {0, 1};
  const auto wrong = other.pack(header_of("64", "64"));
  wsi::TileDecoders others(*wrong, rows);
  const Thrown thrown = thrown_by([&] { decoded(others.decoder(0, *codec, true), payload); });
  CHECK(contains(thrown.text, "the tile is " + describe(shape) + ", the header says 64x64"));
  CHECK(thrown_by([&] { decoded(others.decoder(1, *codec, true), "no image"); }).any);
}
