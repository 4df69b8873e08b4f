// Decoding straight into the target. It takes the library's defaults: the orientation in the header
// is applied, alpha stays as stored, of an animation the first frame is taken, colours are those of
// the image's own profile where it was stored in them, else sRGB.
#include <jxl/decode.h>

#include <bit>
#include <cstring>
#include <limits>
#include <memory>

#include "iac/codec/jxl/jxl.h"
#include "iac/codec/jxl/memory.h"

namespace iac::jxl {
namespace {

// A decoder that has read the header of its payload.
class Opened {
 public:
  Opened(Bytes payload, int events);

  // The library's next event.
  JxlDecoderStatus next();

  JxlDecoder* decoder() const { return decoder_.get(); }
  const JxlBasicInfo& info() const { return info_; }
  ImageShape shape() const;

 private:
  void check_extra_channels() const;
  PixelType type() const;

  Memory memory_;
  std::unique_ptr<JxlDecoder, decltype(&JxlDecoderDestroy)> decoder_;
  JxlBasicInfo info_;
};

Opened::Opened(Bytes payload, int events) : decoder_(nullptr, &JxlDecoderDestroy) {
  const JxlMemoryManager manager = memory_.manager();
  decoder_.reset(JxlDecoderCreate(&manager));
  if (!decoder_) throw std::bad_alloc();
  const auto* data = reinterpret_cast<const uint8_t*>(payload.data());
  const JxlSignature signature = JxlSignatureCheck(data, payload.size());
  if (signature == JXL_SIG_NOT_ENOUGH_BYTES) throw bad("payload is cut");
  if (signature == JXL_SIG_INVALID) throw bad("payload is not JPEG XL");
  JxlDecoderSubscribeEvents(decoder(), JXL_DEC_BASIC_INFO | events);
  JxlDecoderSetInput(decoder(), data, payload.size());
  JxlDecoderCloseInput(decoder());
  if (next() != JXL_DEC_BASIC_INFO ||
      JxlDecoderGetBasicInfo(decoder(), &info_) != JXL_DEC_SUCCESS) {
    throw bad("header is damaged or cut");
  }
  memory_.allow_image(info_.xsize, info_.ysize);
}

// The memory of the library's own vectors is not in our hands.
JxlDecoderStatus Opened::next() {
  try {
    return JxlDecoderProcessInput(decoder());
  } catch (const std::exception&) {
    throw bad("payload is damaged, or needs more memory than there is");
  }
}

PixelType Opened::type() const {
  const uint32_t bits = info_.bits_per_sample;
  if (info_.exponent_bits_per_sample > 0) {
    const bool half = bits == 16 && info_.exponent_bits_per_sample == 5;
    return half ? PixelType::float16 : PixelType::float32;
  }
  if (bits > 16) throw bad("samples are integers of " + std::to_string(bits) + " bits");
  return bits <= 8 ? PixelType::uint8 : PixelType::uint16;
}

void Opened::check_extra_channels() const {
  JxlExtraChannelInfo extra;
  for (uint32_t i = 0; i < info_.num_extra_channels; ++i) {
    if (JxlDecoderGetExtraChannelInfo(decoder(), i, &extra) != JXL_DEC_SUCCESS) {
      throw bad("header is damaged or cut");
    }
    if (extra.type == JXL_CHANNEL_BLACK) throw bad("image is CMYK, which is not supported");
    if (extra.type != JXL_CHANNEL_ALPHA) {
      throw bad("image has an extra channel other than alpha, which is not supported");
    }
  }
  if (info_.num_extra_channels > 1) throw bad("image has more than one alpha channel");
}

ImageShape Opened::shape() const {
  check_extra_channels();
  return {info_.ysize, info_.xsize, info_.num_color_channels + info_.num_extra_channels, type()};
}

// The library scales integers to the full range of their type. Scaling back gives the stored
// ones: neighbours are more than one apart after it, and rounding moves each by at most a half.
template <class T>
void scale_back(std::byte* pixels, uint64_t samples, uint32_t bits) {
  constexpr uint32_t full = std::numeric_limits<T>::max();
  const uint32_t most = (1u << bits) - 1;
  for (uint64_t i = 0; i < samples; ++i) {
    std::byte* at = pixels + i * sizeof(T);
    const auto value = static_cast<T>((load<T>(at) * most + full / 2) / full);
    std::memcpy(at, &value, sizeof value);
  }
}

// Half floats as libjxl gives them in floats. It takes the exponent of NaN and infinity for one
// more power of two; halves do not go that far, so that it can be undone.
uint16_t half_of(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  const uint32_t mantissa = bits & 0x007FFFFF;
  constexpr uint32_t infinity = 0x7C00;
  if (magnitude >= 0x7F800000) {
    const uint32_t payload = mantissa >> 13;
    return static_cast<uint16_t>(sign | infinity | (mantissa != 0 && payload == 0 ? 1 : payload));
  }
  if (magnitude >> 23 == 127 + 16) return static_cast<uint16_t>(sign | infinity | mantissa >> 13);
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | infinity);
  // Round to nearest, ties to even; a carry goes on into the exponent.
  if (magnitude >= 0x38800000) {
    const uint32_t rounded = magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1);
    return static_cast<uint16_t>(sign | rounded >> 13);
  }
  // Halves below their normal range are multiples of 2^-24, which the sum's last bit is.
  const float sum = std::bit_cast<float>(magnitude) + 0.5f;
  return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3F000000));
}

struct HalfTarget {
  ImageShape shape;
  std::byte* pixels;
};

void put_halves(void* opaque, size_t x, size_t y, size_t count, const void* values) {
  const auto& target = *static_cast<const HalfTarget*>(opaque);
  const ImageShape& shape = target.shape;
  if (y >= shape.height || x >= shape.width || count > shape.width - x) return;
  const auto* value = static_cast<const float*>(values);
  std::byte* at = target.pixels + (y * shape.width + x) * shape.channels * sizeof(uint16_t);
  for (size_t i = 0; i < count * shape.channels; ++i) {
    const uint16_t half = half_of(value[i]);
    std::memcpy(at + i * sizeof half, &half, sizeof half);
  }
}

bool set_output(JxlDecoder* decoder, HalfTarget& target) {
  const ImageShape& shape = target.shape;
  JxlPixelFormat format{shape.channels, JXL_TYPE_FLOAT, JXL_NATIVE_ENDIAN, 0};
  if (shape.type == PixelType::float16) {
    return JxlDecoderSetImageOutCallback(decoder, &format, &put_halves, &target) == JXL_DEC_SUCCESS;
  }
  if (shape.type == PixelType::uint8) format.data_type = JXL_TYPE_UINT8;
  if (shape.type == PixelType::uint16) format.data_type = JXL_TYPE_UINT16;
  size_t size = 0;
  return JxlDecoderImageOutBufferSize(decoder, &format, &size) == JXL_DEC_SUCCESS &&
         size == shape.bytes() &&
         JxlDecoderSetImageOutBuffer(decoder, &format, target.pixels, size) == JXL_DEC_SUCCESS;
}

}  // namespace

ImageShape read_shape(Bytes payload) { return Opened(payload, 0).shape(); }

void decode(Bytes payload, const ImageShape& shape, std::byte* pixels) {
  Opened opened(payload, JXL_DEC_FULL_IMAGE);
  if (opened.shape() != shape) throw bad("header is damaged");
  HalfTarget target{shape, pixels};
  JxlDecoderStatus status = opened.next();
  if (status == JXL_DEC_NEED_IMAGE_OUT_BUFFER) {
    if (!set_output(opened.decoder(), target)) throw bad("image does not decode");
    status = opened.next();
  }
  if (status == JXL_DEC_NEED_MORE_INPUT) throw bad("payload is cut");
  if (status != JXL_DEC_FULL_IMAGE) {
    throw bad("payload is damaged or cut, or its frames are far larger than its image");
  }

  const uint32_t bits = opened.info().bits_per_sample;
  if (shape.type == PixelType::uint8 && bits < 8) {
    scale_back<uint8_t>(pixels, shape.samples(), bits);
  } else if (shape.type == PixelType::uint16 && bits < 16) {
    scale_back<uint16_t>(pixels, shape.samples(), bits);
  }
}

}  // namespace iac::jxl
