#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "iac/area_sums.h"

using namespace iac;

namespace {

// Some pixels, and where they are.
struct Picture {
  int64_t y, x;
  uint32_t height, width, channels;
  std::vector<uint16_t> values;

  Picture(int64_t y, int64_t x, uint32_t height, uint32_t width, uint32_t channels = 1,
          uint16_t value = 0)
      : y(y),
        x(x),
        height(height),
        width(width),
        channels(channels),
        values(size_t{height} * width * channels, value) {}

  void fill(std::mt19937_64& random, unsigned most) {
    for (uint16_t& value : values) value = static_cast<uint16_t>(random() % (most + 1));
  }
  // Rows of `type`, some bytes apart.
  std::vector<std::byte> bytes(PixelType type, size_t gap) const {
    const size_t samples = size_t{width} * channels, size = size_of(type);
    std::vector<std::byte> out(height * (samples * size + gap), std::byte{0xAB});
    for (size_t i = 0; i < values.size(); ++i) {
      std::byte* const to = out.data() + i / samples * (samples * size + gap) + i % samples * size;
      if (type == PixelType::uint8) {
        *to = static_cast<std::byte>(values[i]);
      } else {
        std::memcpy(to, &values[i], size);
      }
    }
    return out;
  }
};

std::vector<double> sums_of(const std::vector<Picture>& pictures, PixelType type,
                            const std::vector<double>& background, const AreaAxis& rows,
                            const AreaAxis& columns, unsigned workers = 1) {
  std::vector<std::vector<std::byte>> held;
  std::vector<AreaTile> tiles;
  for (const Picture& picture : pictures) {
    const auto& bytes = held.emplace_back(picture.bytes(type, 6));
    const auto pitch = static_cast<int64_t>(bytes.size() / picture.height);
    tiles.push_back({picture.y, picture.x, picture.height, picture.width, bytes.data(), pitch});
  }
  std::vector<double> sums(rows.cells * columns.cells * background.size());
  add_area_sums(tiles, type, background, rows, columns, sums.data(), workers);
  return sums;
}

// How much of [at, at + 1) the cell covers.
double share(const AreaAxis& axis, size_t cell, int64_t at) {
  const double low = axis.start + static_cast<double>(cell) * axis.scale;
  const double high = axis.start + static_cast<double>(cell + 1) * axis.scale;
  const auto place = static_cast<double>(at);
  return std::max(0.0, std::min(high, place + 1) - std::max(low, place));
}

// The definition, pixel by pixel.
std::vector<double> plain_sums(const std::vector<Picture>& pictures,
                               const std::vector<double>& background, const AreaAxis& rows,
                               const AreaAxis& columns) {
  std::vector<double> sums(rows.cells * columns.cells * background.size());
  for (const Picture& picture : pictures) {
    for (size_t i = 0; i < picture.values.size(); ++i) {
      const size_t channel = i % picture.channels, pixel = i / picture.channels;
      const int64_t y = picture.y + static_cast<int64_t>(pixel / picture.width);
      const int64_t x = picture.x + static_cast<int64_t>(pixel % picture.width);
      for (size_t r = 0; r < rows.cells; ++r) {
        for (size_t c = 0; c < columns.cells; ++c) {
          sums[(r * columns.cells + c) * background.size() + channel] +=
              share(rows, r, y) * share(columns, c, x) * (picture.values[i] - background[channel]);
        }
      }
    }
  }
  return sums;
}

void check_same(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const double most = 1e-9 * std::max(1.0, std::abs(expected[i]));
    if (std::abs(found[i] - expected[i]) > most)
      FAIL_CHECK(i << ": " << found[i] << " is not " << expected[i]);
  }
}

}  // namespace

TEST_CASE("area sums are what the definition gives, tile by tile, by any number of workers") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 60; ++round) {
    const uint32_t channels = round % 2 ? 3 : 1;
    const PixelType type = round % 4 < 2 ? PixelType::uint8 : PixelType::uint16;
    const auto real = [&](double most) {
      return most * static_cast<double>(random() % 1000) / 999;
    };
    // Four tiles around a corner, some of the cells outside of all.
    const uint32_t side = 1 + random() % 20;
    const auto corner = static_cast<int64_t>(random() % 7);
    std::vector<Picture> pictures;
    for (const int64_t y : {corner, corner + side}) {
      for (const int64_t x : {corner, corner + side}) {
        pictures.emplace_back(y, x, side, side, channels);
        pictures.back().fill(random, type == PixelType::uint8 ? 255 : 65535);
      }
    }
    const bool whole = round % 3 == 0;
    const auto axis = [&] {
      const double scale = 1 + real(round % 5 ? 5 : 60), start = real(20) - 10;
      return AreaAxis{whole ? std::floor(start) : start, whole ? std::floor(scale) : scale,
                      1 + random() % 40};
    };
    const AreaAxis rows = axis(), columns = axis();
    const std::vector<double> background(channels, real(255));
    const auto found = sums_of(pictures, type, background, rows, columns);
    check_same(found, plain_sums(pictures, background, rows, columns));
    CHECK(sums_of(pictures, type, background, rows, columns, 3) == found);
  }
}

TEST_CASE("sums of the tallest tile of the largest values are exact") {
  constexpr uint32_t height = 65535;
  const Picture picture(0, 0, height, 3, 1, 65535);
  const auto found = sums_of({picture}, PixelType::uint16, {0}, {0, height, 1}, {0, 3, 1});
  CHECK(found == std::vector{65535.0 * height * 3});
  // Beyond 32 bits over tiles one below the other.
  const Picture below(height, 0, height, 3, 1, 65535);
  CHECK(sums_of({picture, below}, PixelType::uint16, {0}, {0, 2.0 * height, 1}, {0, 3, 1}) ==
        std::vector{2 * 65535.0 * height * 3});
  // A cell that ends within the first and the last row.
  CHECK(sums_of({picture}, PixelType::uint16, {0}, {0.5, height - 1.0, 1}, {0, 1, 1}) ==
        std::vector{65535.0 * (height - 1.0)});
}

TEST_CASE("the widest tile, and cells of the largest scale") {
  constexpr uint32_t width = 65535;
  const Picture picture(0, 0, 1, width, 3, 255);
  const double scale = std::ldexp(1.0, 40);
  const auto found =
      sums_of({picture}, PixelType::uint8, {255, 250, 0}, {0, scale, 2}, {0, scale, 1});
  CHECK(found == std::vector{0.0, 5.0 * width, 255.0 * width, 0.0, 0.0, 0.0});
}

TEST_CASE("tiles far from the origin, and cells far from all tiles") {
  const int64_t far = int64_t{1} << 32;
  const Picture picture(far, far, 2, 2, 1, 9);
  const auto start = static_cast<double>(far);
  CHECK(sums_of({picture}, PixelType::uint8, {1}, {start - 1, 2, 2}, {start + 1, 1, 2}) ==
        std::vector{8.0, 0.0, 8.0, 0.0});
  for (const double away : {-1e300, -1e17, -3.0, 1e17, 1e300}) {
    const auto found = sums_of({picture}, PixelType::uint8, {1}, {away, 1, 3}, {start, 1, 1});
    CHECK(found == std::vector{0.0, 0.0, 0.0});
  }
}

TEST_CASE("sums are added to those that are there, and no cells are none") {
  const Picture picture(0, 0, 1, 1, 1, 7);
  const auto bytes = picture.bytes(PixelType::uint8, 0);
  const AreaTile tile{0, 0, 1, 1, bytes.data(), 1};
  const std::vector<double> background{0};
  double sums[2] = {100, 200};
  add_area_sums({&tile, 1}, PixelType::uint8, background, {0, 1, 1}, {0, 1, 2}, sums, 1);
  CHECK((sums[0] == 107 && sums[1] == 200));
  add_area_sums({&tile, 1}, PixelType::uint8, background, {0, 1, 0}, {0, 1, 2}, sums, 2);
  add_area_sums({&tile, 1}, PixelType::uint8, background, {0, 1, 1}, {0, 1, 0}, sums, 2);
  add_area_sums({}, PixelType::uint8, background, {0, 1, 1}, {0, 1, 2}, sums, 2);
  CHECK((sums[0] == 107 && sums[1] == 200));
}
