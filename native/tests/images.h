// Images of every codec there is, and their payloads.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "iac/codec/codec.h"
#include "tests/packs.h"

namespace iac::tests {

// A codec with parameters, and what it stores.
struct ImageKind {
  std::string name, params;
  bool is_lossless;
  std::vector<PixelType> types;
  std::vector<uint32_t> channels;
  std::shared_ptr<const Codec> codec = {};

  std::string text() const { return name + " " + params; }
};

inline std::vector<ImageKind> image_kinds() {
  using enum PixelType;
  std::vector<ImageKind> kinds{
      {"jxl", R"({"lossless": true, "effort": 2})", true, {uint8, uint16, float32}, {1, 2, 3, 4}},
      {"jxl", R"({"distance": 1.5, "effort": 3})", false, {uint8, uint16}, {1, 3, 4}},
      {"jpeg", R"({"quality": 85})", false, {uint8}, {1, 3}},
      {"jpeg", R"({"subsampling": "444", "progressive": true})", false, {uint8}, {1, 3}},
      {"jpeg", R"({"lossless": true})", true, {uint8, uint16}, {1, 3}},
      {"jpeg2000", R"({"profile": "classic"})", true, {uint8, uint16}, {1, 3, 4}},
      {"jpeg2000", R"({"profile": "classic", "lossless": false})", false, {uint8}, {1, 3}},
      {"jpeg2000", R"({"profile": "ht"})", true, {uint8, uint16}, {1, 3, 4}},
      {"jpeg2000", R"({"profile": "ht", "lossless": false})", false, {uint8}, {1, 3}},
      {"jpegls", "{}", true, {uint8, uint16}, {1, 3, 4}},
      {"jpegls", R"({"near_lossless": 2})", false, {uint8, uint16}, {1, 3, 4}},
  };
  for (ImageKind& kind : kinds) kind.codec = make_codec(kind.name, kind.params);
  return kinds;
}

// A slope with a little noise, as images are.
inline std::string pixels_of(const ImageShape& shape, std::mt19937_64& random) {
  std::string pixels(shape.bytes(), '\0');
  const uint64_t row = uint64_t{shape.width} * shape.channels;
  for (uint64_t i = 0; i < shape.samples(); ++i) {
    const auto value =
        static_cast<unsigned>(i / row * 5 + i % row * 3 + i % shape.channels * 40 + random() % 9);
    char* const to = pixels.data() + i * size_of(shape.type);
    if (shape.type == PixelType::uint8) {
      *to = static_cast<char>(value);
    } else if (shape.type == PixelType::uint16) {
      const auto wide = static_cast<uint16_t>(value * 37);
      std::memcpy(to, &wide, sizeof wide);
    } else {
      const float real = static_cast<float>(value % 1000) / 1000;
      std::memcpy(to, &real, sizeof real);
    }
  }
  return pixels;
}

inline std::string encoded(const Codec& codec, const ImageShape& shape, const std::string& pixels) {
  std::vector<std::byte> out;
  dynamic_cast<const ImageCodec&>(codec).encode(shape, bytes_of(pixels).data(), out);
  return text_of(out);
}

struct ImageSample {
  const ImageKind* kind;
  ImageShape shape;
  std::string pixels, payload;
};

// One of each kind, type and number of channels, of random sides.
inline std::vector<ImageSample> image_samples(const std::vector<ImageKind>& kinds,
                                              std::mt19937_64& random, uint32_t most = 60) {
  std::vector<ImageSample> samples;
  for (const ImageKind& kind : kinds) {
    for (const PixelType type : kind.types) {
      for (const uint32_t channels : kind.channels) {
        const auto side = [&] { return static_cast<uint32_t>(1 + random() % most); };
        ImageSample sample{&kind, {side(), side(), channels, type}, {}, {}};
        sample.pixels = pixels_of(sample.shape, random);
        sample.payload = encoded(*kind.codec, sample.shape, sample.pixels);
        samples.push_back(std::move(sample));
      }
    }
  }
  return samples;
}

}  // namespace iac::tests
