// What Python cannot reach of the JPEG XL codec: payloads with headers that no encoder of its
// packages writes, made with libjxl itself.
#include <jxl/encode.h>

#include <catch2/catch.hpp>
#include <functional>

#include "iac/codec/codec.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

namespace {

constexpr uint32_t width = 6, height = 4;

std::vector<uint8_t> ramp(size_t size) {
  std::vector<uint8_t> values(size);
  for (size_t i = 0; i < size; ++i) values[i] = static_cast<uint8_t>(i * 7 + 3);
  return values;
}

// What a payload is made of; each test changes some of it.
struct Foreign {
  JxlBasicInfo info;
  JxlPixelFormat format{3, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
  std::vector<JxlExtraChannelInfo> extra;
  std::vector<uint8_t> pixels = ramp(width * height * 3);
  std::function<void(JxlEncoderFrameSettings*)> frame = [](JxlEncoderFrameSettings*) {};
  int frames = 1;
  uint32_t frame_width = width, frame_height = height;

  Foreign() {
    JxlEncoderInitBasicInfo(&info);
    info.xsize = width;
    info.ysize = height;
    info.uses_original_profile = true;
  }

  void add_extra(JxlExtraChannelType type) {
    JxlExtraChannelInfo channel;
    JxlEncoderInitExtraChannelInfo(type, &channel);
    channel.bits_per_sample = info.bits_per_sample;
    extra.push_back(channel);
    info.num_extra_channels = static_cast<uint32_t>(extra.size());
    if (type == JXL_CHANNEL_ALPHA) info.alpha_bits = info.bits_per_sample;
  }

  std::string payload() const {
    JxlEncoder* encoder = JxlEncoderCreate(nullptr);
    REQUIRE(JxlEncoderSetBasicInfo(encoder, &info) == JXL_ENC_SUCCESS);
    const uint32_t inside = format.num_channels % 2 == 0 ? 1 : 0;  // alpha is among the pixels
    for (size_t i = inside; i < extra.size(); ++i) {
      REQUIRE(JxlEncoderSetExtraChannelInfo(encoder, i, &extra[i]) == JXL_ENC_SUCCESS);
    }
    JxlColorEncoding color;
    JxlColorEncodingSetToSRGB(&color, info.num_color_channels == 1);
    REQUIRE(JxlEncoderSetColorEncoding(encoder, &color) == JXL_ENC_SUCCESS);
    JxlEncoderFrameSettings* settings = JxlEncoderFrameSettingsCreate(encoder, nullptr);
    JxlEncoderSetFrameLossless(settings, info.uses_original_profile);
    frame(settings);
    for (int i = 0; i < frames; ++i) {
      REQUIRE(JxlEncoderAddImageFrame(settings, &format, pixels.data(), pixels.size()) ==
              JXL_ENC_SUCCESS);
    }
    const std::vector<uint8_t> plane(size_t{frame_width} * frame_height *
                                     (format.data_type == JXL_TYPE_UINT8 ? 1 : 4));
    for (uint32_t i = inside; i < extra.size(); ++i) {
      REQUIRE(JxlEncoderSetExtraChannelBuffer(settings, &format, plane.data(), plane.size(), i) ==
              JXL_ENC_SUCCESS);
    }
    JxlEncoderCloseInput(encoder);
    std::string out;
    size_t written = 0;
    JxlEncoderStatus status = JXL_ENC_NEED_MORE_OUTPUT;
    while (status == JXL_ENC_NEED_MORE_OUTPUT) {
      out.resize(written + (1 << 20));
      auto* next = reinterpret_cast<uint8_t*>(out.data() + written);
      size_t room = out.size() - written;
      status = JxlEncoderProcessOutput(encoder, &next, &room);
      written = out.size() - room;
    }
    REQUIRE(status == JXL_ENC_SUCCESS);
    JxlEncoderDestroy(encoder);
    out.resize(written);
    return out;
  }
};

const Codec& codec() {
  static const auto instance = make_codec("jxl", "{}");
  return *instance;
}

ImageShape shape_of(const std::string& payload) {
  return codec().decoded_size(bytes_of(payload)).image;
}

std::vector<uint8_t> decoded(const std::string& payload) {
  std::vector<uint8_t> memory(codec().decoded_size(bytes_of(payload)).bytes + 16, 0x5A);
  Target target(reinterpret_cast<std::byte*>(memory.data()), memory.size() - 16);
  REQUIRE(codec().decode(bytes_of(payload), target) == memory.size() - 16);
  for (size_t i = memory.size() - 16; i < memory.size(); ++i) REQUIRE(memory[i] == 0x5A);
  memory.resize(memory.size() - 16);
  return memory;
}

std::string refusal(const std::string& payload) {
  const Thrown thrown = thrown_by([&] { shape_of(payload); });
  return thrown.kind == Error::Kind::codec ? thrown.text : "";
}

}  // namespace

TEST_CASE("jxl: an image made elsewhere decodes to its pixels") {
  const Foreign image;
  CHECK(shape_of(image.payload()) == ImageShape{height, width, 3, PixelType::uint8});
  CHECK(decoded(image.payload()) == image.pixels);
}

TEST_CASE("jxl: the orientation in the header is applied") {
  Foreign image;
  image.info.orientation = JXL_ORIENT_ROTATE_90_CW;
  const std::string payload = image.payload();
  CHECK(shape_of(payload) == ImageShape{width, height, 3, PixelType::uint8});
  const std::vector<uint8_t> turned = decoded(payload);
  for (uint32_t y = 0; y < width; ++y) {
    for (uint32_t x = 0; x < height; ++x) {
      const size_t from = ((height - 1 - x) * width + y) * 3, to = (y * height + x) * 3;
      for (size_t c = 0; c < 3; ++c) REQUIRE(turned[to + c] == image.pixels[from + c]);
    }
  }
  image.info.orientation = JXL_ORIENT_FLIP_HORIZONTAL;
  CHECK(decoded(image.payload())[0] == image.pixels[(width - 1) * 3]);
}

TEST_CASE("jxl: half floats are turned as well") {
  Foreign image;
  image.info.orientation = JXL_ORIENT_TRANSPOSE;
  image.info.bits_per_sample = 16;
  image.info.exponent_bits_per_sample = 5;
  image.info.num_color_channels = 1;
  image.format = {1, JXL_TYPE_FLOAT, JXL_NATIVE_ENDIAN, 0};
  std::vector<float> values(width * height);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  image.pixels.assign(reinterpret_cast<uint8_t*>(values.data()),
                      reinterpret_cast<uint8_t*>(values.data() + values.size()));
  const std::string payload = image.payload();
  CHECK(shape_of(payload) == ImageShape{width, height, 1, PixelType::float16});
  const std::vector<uint8_t> turned = decoded(payload);
  const uint16_t first_row[] = {0x0000, 0x4600, 0x4A00, 0x4C80};  // 0, 6, 12, 18
  CHECK(std::memcmp(turned.data(), first_row, sizeof first_row) == 0);
}

TEST_CASE("jxl: alpha comes as it is stored, premultiplied or not") {
  for (const bool premultiplied : {false, true}) {
    Foreign image;
    image.add_extra(JXL_CHANNEL_ALPHA);
    image.info.alpha_premultiplied = premultiplied;
    image.format.num_channels = 4;
    image.pixels = ramp(width * height * 4);
    CHECK(shape_of(image.payload()).channels == 4);
    CHECK(decoded(image.payload()) == image.pixels);
  }
}

TEST_CASE("jxl: extra channels other than one alpha are errors that say so") {
  Foreign black, depth, two;
  black.add_extra(JXL_CHANNEL_BLACK);
  CHECK(contains(refusal(black.payload()), "jxl: image is CMYK"));
  depth.add_extra(JXL_CHANNEL_DEPTH);
  CHECK(contains(refusal(depth.payload()), "jxl: image has an extra channel other than alpha"));
  two.add_extra(JXL_CHANNEL_ALPHA);
  two.add_extra(JXL_CHANNEL_ALPHA);
  CHECK(contains(refusal(two.payload()), "jxl: image has more than one alpha channel"));
}

TEST_CASE("jxl: integers of more than 16 bits are an error") {
  Foreign image;
  image.info.bits_per_sample = 24;
  image.format.data_type = JXL_TYPE_FLOAT;
  image.pixels.assign(width * height * 12, 0);
  CHECK(contains(refusal(image.payload()), "jxl: samples are integers of 24 bits"));
}

TEST_CASE("jxl: other floats are float32") {
  Foreign image;
  image.info.bits_per_sample = 24;
  image.info.exponent_bits_per_sample = 7;
  image.format.data_type = JXL_TYPE_FLOAT;
  image.pixels.assign(width * height * 12, 0);
  CHECK(shape_of(image.payload()).type == PixelType::float32);
  CHECK(decoded(image.payload()) == image.pixels);
}

namespace {

// `frames` layers, each a square of that side that begins left of and above the image.
Foreign layered(int frames, uint32_t side) {
  Foreign image;
  image.frame_width = image.frame_height = side;
  image.info.num_color_channels = image.format.num_channels = 1;
  image.pixels.assign(size_t{side} * side, 77);
  image.frames = frames;
  image.frame = [side](JxlEncoderFrameSettings* settings) {
    JxlFrameHeader header;
    JxlEncoderInitFrameHeader(&header);
    header.layer_info.have_crop = true;
    header.layer_info.xsize = header.layer_info.ysize = side;
    header.layer_info.crop_x0 = header.layer_info.crop_y0 = -1;
    header.layer_info.save_as_reference = 1;
    REQUIRE(JxlEncoderSetFrameHeader(settings, &header) == JXL_ENC_SUCCESS);
    JxlEncoderFrameSettingsSetOption(settings, JXL_ENC_FRAME_SETTING_EFFORT, 3);
  };
  return image;
}

}  // namespace

TEST_CASE("jxl: layers make one image") {
  const Foreign image = layered(3, 5);  // without the last two columns
  const std::string payload = image.payload();
  CHECK(shape_of(payload) == ImageShape{height, width, 1, PixelType::uint8});
  const std::vector<uint8_t> pixels = decoded(payload);
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) REQUIRE(pixels[y * width + x] == (x < 4 ? 77 : 0));
  }
}

TEST_CASE("jxl: layers far larger than the image are an error before they take memory") {
  const std::string payload = layered(2, 2100).payload();
  REQUIRE(payload.size() < 20000);
  CHECK(shape_of(payload) == ImageShape{height, width, 1, PixelType::uint8});
  std::vector<std::byte> room(width * height);
  Target target(room.data(), room.size());
  const Thrown thrown = thrown_by([&] { codec().decode(bytes_of(payload), target); });
  CHECK(thrown.kind == Error::Kind::codec);
  CHECK(contains(thrown.text, "jxl: payload is damaged or cut, or its frames are far larger"));
}

TEST_CASE("jxl: layers without end are an error before they take time") {
  const std::string payload = layered(400, 300).payload();
  std::vector<std::byte> room(width * height);
  Target target(room.data(), room.size());
  const Thrown thrown = thrown_by([&] { codec().decode(bytes_of(payload), target); });
  CHECK(contains(thrown.text, "jxl: payload is damaged or cut, or its frames are far larger"));
}
