// JPEG-LS (ISO/IEC 14495-1) by CharLS. Written with interleaved samples and no colour transform.
#include <charls/charls.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "iac/codec/codecs.h"
#include "iac/codec/jpegls/markers.h"
#include "iac/scratch.h"

namespace iac {
namespace {

// Where data ends too early CharLS asks for bits below zero, and counts down from there for minutes
// or for ever. No code consists of zeros only, so that behind these it comes to an exact end.
constexpr size_t guard_bytes = 16;

// One bit stands for a run of at most so many pixels, and for no more than one line.
constexpr uint64_t longest_run = 32768;

// One sample takes at most 64 bits, a bit is stuffed in behind every byte of ones, and headers take
// less than a kilobyte.
constexpr size_t most_bytes(uint64_t samples) { return samples * 8 / 7 * 8 + 1024; }

using Decoder = std::unique_ptr<charls_jpegls_decoder, decltype(&charls_jpegls_decoder_destroy)>;
using Encoder = std::unique_ptr<charls_jpegls_encoder, decltype(&charls_jpegls_encoder_destroy)>;

// What a payload's header says.
struct Header {
  charls::frame_info frame{};
  charls::interleave_mode interleave{};
  charls::color_transformation transform{};

  uint32_t planes() const {
    return interleave == charls::interleave_mode::none ? frame.component_count : 1;
  }
  ImageShape shape() const {
    return {frame.height, frame.width, static_cast<uint32_t>(frame.component_count),
            frame.bits_per_sample > 8 ? PixelType::uint16 : PixelType::uint8};
  }
};

// Every bit that is set in any of `count` values.
template <class Value>
Value union_of(const std::byte* values, uint64_t count) {
  Value all = 0;
  for (uint64_t i = 0; i < count; ++i) {
    Value value;
    std::memcpy(&value, values + i * sizeof value, sizeof value);
    all |= value;
  }
  return all;
}

// Planes one behind the other to pixels one behind the other.
template <class Value>
void interleave(const std::byte* planes, const ImageShape& shape, std::byte* pixels) {
  const uint64_t count = uint64_t{shape.height} * shape.width, step = shape.channels;
  for (uint64_t plane = 0; plane < step; ++plane) {
    const std::byte* from = planes + plane * count * sizeof(Value);
    std::byte* to = pixels + plane * sizeof(Value);
    for (uint64_t i = 0; i < count; ++i) {
      std::memcpy(to + i * step * sizeof(Value), from + i * sizeof(Value), sizeof(Value));
    }
  }
}

// A thread's memory for a payload's copy and for planes. What is unusually large is given back.
class Aside {
 public:
  explicit Aside(size_t bytes) {
    scratch_.restart();
    scratch_.limit_record(SIZE_MAX);
    scratch_.grow(bytes);
  }
  ~Aside() { scratch_.release_if_large(); }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  std::byte* data() const { return scratch_.data(); }

 private:
  static thread_local Scratch scratch_;
};

thread_local Scratch Aside::scratch_;

class JpegLs final : public ImageCodec {
 public:
  JpegLs(int near, std::optional<int> bits) : near_(near), bits_(bits) {}

  std::string_view name() const override { return "jpegls"; }
  std::string parameters() const override {
    return "{\"near_lossless\": " + std::to_string(near_) +
           ", \"bits_per_sample\": " + (bits_ ? std::to_string(*bits_) : "null") + "}";
  }

 protected:
  ImageShape shape_of(Bytes payload) const override {
    const Decoder decoder(charls_jpegls_decoder_create(), &charls_jpegls_decoder_destroy);
    const Header header = read_header(*decoder, payload);
    check_supported(header);
    const auto& frame = header.frame;
    const uint64_t runs = uint64_t{frame.height} * ((frame.width - 1) / longest_run + 1);
    if (runs * header.planes() > payload.size() * 8) {
      throw bad("payload is too short for its image of " + describe(header.shape()));
    }
    return header.shape();
  }

  void decode_pixels(Bytes payload, const ImageShape& shape, std::byte* pixels) const override {
    const size_t size = (payload.size() + guard_bytes + 1) & ~size_t{1};
    // Where CharLS does not write to: planes are interleaved afterwards, and it writes 16-bit
    // samples to even addresses only.
    const bool is_odd = size_of(shape.type) == 2 && reinterpret_cast<uintptr_t>(pixels) % 2 != 0;
    const bool may_be_planar = shape.channels > 1;
    const Aside aside(size + (is_odd || may_be_planar ? shape.bytes() : 0));
    std::memcpy(aside.data(), payload.data(), payload.size());
    std::memset(aside.data() + payload.size(), 0, size - payload.size());

    const Decoder decoder(charls_jpegls_decoder_create(), &charls_jpegls_decoder_destroy);
    const Header header = read_header(*decoder, {aside.data(), size});
    if (header.shape() != shape) throw bad("payload changed while it was decoded");
    if (const char* trap = trap_in_jpegls({aside.data(), payload.size()})) {
      throw bad(std::string("payload cannot be decoded, ") + trap);
    }
    const bool is_planar = header.planes() > 1;
    std::byte* decoded = is_odd || is_planar ? aside.data() + size : pixels;
    check(charls_jpegls_decoder_decode_to_buffer(decoder.get(), decoded, shape.bytes(), 0));
    if (is_planar) {
      size_of(shape.type) == 1 ? interleave<uint8_t>(decoded, shape, pixels)
                               : interleave<uint16_t>(decoded, shape, pixels);
    } else if (is_odd) {
      std::memcpy(pixels, decoded, shape.bytes());
    }
  }

  void encode_pixels(const ImageShape& shape, const std::byte* pixels,
                     std::vector<std::byte>& out) const override {
    const int bits = checked_bits(shape, pixels);
    const size_t start = out.size(), most = most_bytes(shape.samples());
    // Noise takes a few percent more than its own size: it is encoded again.
    size_t room = shape.bytes() + shape.bytes() / 32 + 1024;
    while (true) {
      out.resize(start + std::min(room, most));
      const auto size = encode_within(shape, bits, pixels, std::span(out).subspan(start));
      if (size.has_value()) {
        out.resize(start + *size);
        return;
      }
      if (room >= most) throw refused("CharLS finds no room for the image");
      room *= 2;
    }
  }

 private:
  void check(charls_jpegls_errc code) const {
    if (code == charls_jpegls_errc::success) return;
    if (code == charls_jpegls_errc::not_enough_memory) throw std::bad_alloc();
    if (code == charls_jpegls_errc::parameter_value_not_supported) {
      throw bad(
          "payload needs what CharLS does not decode: mapping tables, subsampled components, a "
          "point transform, several components to a scan but not all, or two interleaved ones");
    }
    throw bad(std::string("payload does not decode: ") +
              charls_get_error_message(static_cast<charls_jpegls_errc>(code)));
  }

  Header read_header(charls_jpegls_decoder& decoder, Bytes payload) const {
    Header header;
    check(charls_jpegls_decoder_set_source_buffer(&decoder, payload.data(), payload.size()));
    check(charls_jpegls_decoder_read_header(&decoder));
    check(charls_jpegls_decoder_get_frame_info(&decoder, &header.frame));
    check(charls_jpegls_decoder_get_interleave_mode(&decoder, &header.interleave));
    check(charls_jpegls_decoder_get_color_transformation(&decoder, &header.transform));
    return header;
  }

  void check_supported(const Header& header) const {
    const int components = header.frame.component_count;
    if (components > 4) {
      throw bad("payload has " + std::to_string(components) +
                " components, at most 4 can be decoded");
    }
    if (header.transform != charls::color_transformation::none &&
        (header.planes() != 1 || components != 3)) {
      throw bad("payload has a colour transform of components that are not interleaved RGB");
    }
  }

  // The bits a sample is stored with. Throws for what cannot be.
  int checked_bits(const ImageShape& shape, const std::byte* pixels) const {
    const bool is_narrow = shape.type == PixelType::uint8;
    if (!is_narrow && shape.type != PixelType::uint16) {
      throw refused("images are uint8 or uint16, not " + std::string(name_of(shape.type)));
    }
    if (shape.channels != 1 && shape.channels != 3 && shape.channels != 4) {
      throw refused("images have 1, 3 or 4 channels, not " + std::to_string(shape.channels));
    }
    const int width = is_narrow ? 8 : 16, bits = bits_.value_or(width);
    if (bits > width) {
      throw refused("bits_per_sample is " + std::to_string(bits) + ", the image is " +
                    std::string(name_of(shape.type)));
    }
    if (width == 16 && bits <= 8) {
      throw refused("bits_per_sample is " + std::to_string(bits) +
                    ", which decodes to uint8; make the uint16 image a uint8 one first");
    }
    const int most_near = std::min(255, ((1 << bits) - 1) / 2);
    if (near_ > most_near) {
      throw refused("near_lossless is " + std::to_string(near_) + ", at most " +
                    std::to_string(most_near) + " with " + std::to_string(bits) + " bits a sample");
    }
    const int all = is_narrow ? union_of<uint8_t>(pixels, shape.samples())
                              : union_of<uint16_t>(pixels, shape.samples());
    if (all >> bits != 0) {
      throw refused("a value is above " + std::to_string((1 << bits) - 1) +
                    ", the largest of bits_per_sample " + std::to_string(bits));
    }
    return bits;
  }

  // The encoded size; nothing when there is not enough room.
  std::optional<size_t> encode_within(const ImageShape& shape, int bits, const std::byte* pixels,
                                      std::span<std::byte> room) const {
    const Encoder encoder(charls_jpegls_encoder_create(), &charls_jpegls_encoder_destroy);
    const charls::frame_info frame{shape.width, shape.height, bits,
                                   static_cast<int32_t>(shape.channels)};
    const auto interleave =
        shape.channels > 1 ? charls::interleave_mode::sample : charls::interleave_mode::none;
    size_t size = 0;
    auto code = charls_jpegls_encoder_set_frame_info(encoder.get(), &frame);
    const auto then = [&](auto call, auto... arguments) {
      if (code == charls_jpegls_errc::success) code = call(encoder.get(), arguments...);
    };
    then(charls_jpegls_encoder_set_near_lossless, near_);
    then(charls_jpegls_encoder_set_interleave_mode, interleave);
    then(charls_jpegls_encoder_set_destination_buffer, room.data(), room.size());
    then(charls_jpegls_encoder_encode_from_buffer, pixels, shape.bytes(), 0);
    then(charls_jpegls_encoder_get_bytes_written, &size);
    if (code == charls_jpegls_errc::success) return size;
    if (code == charls_jpegls_errc::destination_buffer_too_small) return std::nullopt;
    throw refused(std::string("CharLS refuses the image: ") + charls_get_error_message(code));
  }

  int near_;
  std::optional<int> bits_;
};

}  // namespace

std::shared_ptr<const Codec> make_jpegls(Params& params) {
  const int near = params.integer("near_lossless", 0, 255, 0);
  return std::make_shared<JpegLs>(near, params.optional_integer("bits_per_sample", 2, 16));
}

}  // namespace iac
