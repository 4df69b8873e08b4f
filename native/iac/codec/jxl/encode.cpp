#include <jxl/encode.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "iac/codec/jxl/jxl.h"

namespace iac::jxl {
namespace {

using Encoder = std::unique_ptr<JxlEncoder, decltype(&JxlEncoderDestroy)>;

Encoder make_encoder() {
  Encoder encoder(JxlEncoderCreate(nullptr), &JxlEncoderDestroy);
  if (!encoder) throw std::bad_alloc();
  return encoder;
}

struct Sample {
  JxlDataType type;
  uint32_t bits, exponent_bits;
};

Sample sample_of(PixelType type) {
  switch (type) {
    case PixelType::uint8:
      return {JXL_TYPE_UINT8, 8, 0};
    case PixelType::uint16:
      return {JXL_TYPE_UINT16, 16, 0};
    case PixelType::float16:
      return {JXL_TYPE_FLOAT16, 16, 5};
    case PixelType::float32:
      return {JXL_TYPE_FLOAT, 32, 8};
    default:
      throw refused("images of " + std::string(name_of(type)) +
                    " cannot be encoded, only uint8, uint16, float16 and float32");
  }
}

JxlBasicInfo info_of(const ImageShape& shape, const Sample& sample, bool lossless) {
  JxlBasicInfo info;
  JxlEncoderInitBasicInfo(&info);
  info.xsize = shape.width;
  info.ysize = shape.height;
  info.bits_per_sample = sample.bits;
  info.exponent_bits_per_sample = sample.exponent_bits;
  info.num_color_channels = shape.channels < 3 ? 1 : 3;
  if (shape.channels % 2 == 0) {
    info.num_extra_channels = 1;
    info.alpha_bits = sample.bits;
    info.alpha_exponent_bits = sample.exponent_bits;
  }
  info.uses_original_profile = lossless;
  return info;
}

void must(JxlEncoder* encoder, JxlEncoderStatus status, const char* what) {
  if (status == JXL_ENC_SUCCESS) return;
  throw refused(std::string("libjxl fails at ") + what + " with error " +
                std::to_string(JxlEncoderGetError(encoder)));
}

void set_frame(JxlEncoder* encoder, JxlEncoderFrameSettings* frame, const Settings& settings,
               PixelType type) {
  must(encoder,
       JxlEncoderFrameSettingsSetOption(frame, JXL_ENC_FRAME_SETTING_EFFORT, settings.effort),
       "the effort");
  if (settings.lossless) {
    must(encoder, JxlEncoderSetFrameLossless(frame, true), "lossless encoding");
  } else {
    must(encoder, JxlEncoderSetFrameDistance(frame, static_cast<float>(settings.distance)),
         "the distance");
  }
  // Letters that repeat are looked for in images with plain areas, such as the air around a body.
  // Among samples of more than 8 bits they are hardly found, and looking takes a fifth of the time.
  if (type != PixelType::uint8) {
    must(encoder, JxlEncoderFrameSettingsSetOption(frame, JXL_ENC_FRAME_SETTING_PATCHES, 0),
         "the patches");
  }
}

// libjxl refuses NaN and infinity, and stores the upper half of the halves below their normal range
// wrongly. It takes the exponent and mantissa bits of this float for those of the half.
std::vector<uint32_t> floats_of_halves(const ImageShape& shape, const std::byte* pixels) {
  std::vector<uint32_t> floats(shape.samples());
  for (size_t i = 0; i < floats.size(); ++i) {
    const uint32_t half = load<uint16_t>(pixels + 2 * i);
    floats[i] = (half & 0x8000) << 16 | ((half & 0x7FFF) + ((127 - 15) << 10)) << 13;
  }
  return floats;
}

void add_pixels(JxlEncoder* encoder, const Settings& settings, JxlEncoderFrameSettings* frame,
                const ImageShape& shape, const std::byte* pixels) {
  JxlPixelFormat format{shape.channels, sample_of(shape.type).type, JXL_NATIVE_ENDIAN, 0};
  if (settings.lossless && shape.type == PixelType::float16) {
    const std::vector<uint32_t> floats = floats_of_halves(shape, pixels);
    format.data_type = JXL_TYPE_FLOAT;
    must(encoder, JxlEncoderAddImageFrame(frame, &format, floats.data(), 4 * floats.size()),
         "the pixels");
  } else {
    must(encoder, JxlEncoderAddImageFrame(frame, &format, pixels, shape.bytes()), "the pixels");
  }
}

void add_image(JxlEncoder* encoder, const Settings& settings, const ImageShape& shape,
               const std::byte* pixels) {
  const Sample sample = sample_of(shape.type);
  const JxlBasicInfo info = info_of(shape, sample, settings.lossless);
  if (settings.container) must(encoder, JxlEncoderUseContainer(encoder, true), "the container");
  must(encoder, JxlEncoderSetBasicInfo(encoder, &info), "the header");
  JxlColorEncoding color;
  const bool gray = info.num_color_channels == 1;
  if (sample.exponent_bits > 0) {
    JxlColorEncodingSetToLinearSRGB(&color, gray);
  } else {
    JxlColorEncodingSetToSRGB(&color, gray);
  }
  must(encoder, JxlEncoderSetColorEncoding(encoder, &color), "the colours");
  JxlEncoderFrameSettings* frame = JxlEncoderFrameSettingsCreate(encoder, nullptr);
  set_frame(encoder, frame, settings, shape.type);
  add_pixels(encoder, settings, frame, shape, pixels);
  JxlEncoderCloseInput(encoder);
}

void write(JxlEncoder* encoder, size_t guess, std::vector<std::byte>& out) {
  size_t written = out.size();
  out.resize(written + guess);
  for (;;) {
    auto* next = reinterpret_cast<uint8_t*>(out.data() + written);
    size_t room = out.size() - written;
    const JxlEncoderStatus status = JxlEncoderProcessOutput(encoder, &next, &room);
    written = out.size() - room;
    if (status != JXL_ENC_NEED_MORE_OUTPUT) {
      must(encoder, status, "the pixels");
      break;
    }
    out.resize(out.size() * 2);
  }
  out.resize(written);
}

// Appends to `out`, which is left as it was when this throws Error.
void encode_once(const Settings& settings, const ImageShape& shape, const std::byte* pixels,
                 std::vector<std::byte>& out) {
  const size_t start = out.size();
  const Encoder encoder = make_encoder();
  try {
    add_image(encoder.get(), settings, shape, pixels);
    write(encoder.get(), shape.bytes() / 4 + 1024, out);
  } catch (...) {
    out.resize(start);
    throw;
  }
}

bool decodes_to(Bytes payload, const ImageShape& shape, const std::byte* pixels) {
  const auto decoded = std::make_unique_for_overwrite<std::byte[]>(shape.bytes());
  try {
    if (read_shape(payload) != shape) return false;
    decode(payload, shape, decoded.get());
  } catch (const Error&) {
    return false;
  }
  return std::memcmp(decoded.get(), pixels, shape.bytes()) == 0;
}

// libjxl takes the bits of floats for integers of 32 bits, and some of its arithmetic has no bits
// to spare then. No image is known that it stores wrongly, but nothing in it tells if one is.
void encode_exact_floats(const Settings& settings, const ImageShape& shape, const std::byte* pixels,
                         std::vector<std::byte>& out) {
  const size_t start = out.size();
  encode_once(settings, shape, pixels, out);
  if (decodes_to(Bytes(out).subspan(start), shape, pixels)) return;
  out.resize(start);
  throw refused("libjxl cannot store these floats exactly");
}

// The encoder of its own that libjxl has for the least effort stores some images wrongly: of 16 x
// 16 random pixels one in a hundred.
void encode_exact_fast(const Settings& settings, const ImageShape& shape, const std::byte* pixels,
                       std::vector<std::byte>& out) {
  const size_t start = out.size();
  encode_once(settings, shape, pixels, out);
  if (decodes_to(Bytes(out).subspan(start), shape, pixels)) return;
  out.resize(start);
  Settings slower = settings;
  slower.effort = 2;
  encode_once(slower, shape, pixels, out);
}

// Colours of lossy images are transformed, of which nothing sensible comes for other values.
void check_lossy_floats(const ImageShape& shape, const std::byte* pixels) {
  constexpr float limit = 65504;  // the largest half float
  bool within = true;
  for (uint64_t i = 0; i < shape.samples() && within; ++i) {
    if (shape.type == PixelType::float16) {
      within = (load<uint16_t>(pixels + 2 * i) & 0x7C00) != 0x7C00;
    } else {
      within = std::abs(load<float>(pixels + 4 * i)) <= limit;
    }
  }
  if (!within) {
    throw refused("lossy encoding takes floats from -65504 to 65504 only, no NaN or infinity");
  }
}

}  // namespace

void encode(const Settings& settings, const ImageShape& shape, const std::byte* pixels,
            std::vector<std::byte>& out) {
  if (shape.channels > 4) {
    throw refused("images of " + std::to_string(shape.channels) + " channels cannot be encoded");
  }
  if (settings.lossless && shape.type == PixelType::float32) {
    return encode_exact_floats(settings, shape, pixels, out);
  }
  if (settings.lossless && settings.effort == 1) {
    return encode_exact_fast(settings, shape, pixels, out);
  }
  const bool floats = sample_of(shape.type).exponent_bits > 0;
  if (floats && !settings.lossless) check_lossy_floats(shape, pixels);
  encode_once(settings, shape, pixels, out);
}

}  // namespace iac::jxl
