#include "iac/dicom/pixels.h"

#include <string>
#include <utility>

#include "iac/codec/no_image.h"
#include "iac/error.h"

namespace iac::dicom {
namespace {

// The ids of codecs whose records are pixels, not frames as they stood in a file: JPEG XL streams
// and, of pixels that those cannot hold, bytes under zstd. Packs with one codec have the former.
constexpr int64_t pixels_jxl = 0, pixels_zstd = 1;

bool is_integer(PixelType type) {
  return type != PixelType::float16 && type != PixelType::float32 && type != PixelType::float64;
}

bool is_signed(PixelType type) {
  return type == PixelType::int8 || type == PixelType::int16 || type == PixelType::int32 ||
         type == PixelType::int64;
}

// Calls `body` with a zero of the unsigned type of as many bytes.
template <class Body>
void with_unsigned(PixelType type, Body body) {
  switch (size_of(type)) {
    case 1:
      return body(uint8_t{});
    case 2:
      return body(uint16_t{});
    case 4:
      return body(uint32_t{});
    default:
      return body(uint64_t{});
  }
}

// The upper bits of numbers of `bits` bits made those of the sign.
void extend_signs(std::byte* pixels, uint64_t count, PixelType type, int bits) {
  with_unsigned(type, [&]<class T>(T) {
    const int unused = static_cast<int>(sizeof(T)) * 8 - bits;
    if (unused == 0) return;
    for (uint64_t i = 0; i < count; ++i) {
      std::byte* const at = pixels + i * sizeof(T);
      const auto moved = static_cast<std::make_signed_t<T>>(static_cast<T>(load<T>(at) << unused));
      const auto value = static_cast<std::make_signed_t<T>>(moved >> unused);
      std::memcpy(at, &value, sizeof value);
    }
  });
}

// Integers given more bytes each, in place: from the last on, none is written over before it is
// read.
void widen(std::byte* pixels, uint64_t count, PixelType from, PixelType to) {
  with_unsigned(from, [&]<class Narrow>(Narrow) {
    with_unsigned(to, [&]<class Wide>(Wide) {
      using Signed = std::make_signed_t<Narrow>;
      for (uint64_t i = count; i-- > 0;) {
        const auto narrow = load<Narrow>(pixels + i * sizeof(Narrow));
        const Wide wide = is_signed(from) ? static_cast<Wide>(static_cast<Signed>(narrow))
                                          : static_cast<Wide>(narrow);
        std::memcpy(pixels + i * sizeof(Wide), &wide, sizeof wide);
      }
    });
  });
}

// Images whose pixels are of a type that their codec has no word for.
class TypedPixels final : public Codec {
 public:
  // `bits`: of a number that are in use; 0: a frame's numbers are whole, and as wide as its type.
  TypedPixels(const Codec& codec, PixelType type, int bits)
      : codec_(codec), type_(type), bits_(bits) {}

  std::string_view name() const override { return codec_.name(); }
  std::string parameters() const override { return codec_.parameters(); }
  bool gives_images() const override { return true; }

  SizeHint decoded_size(Bytes payload) const override {
    SizeHint hint = codec_.decoded_size(payload);
    const PixelType found = hint.image.type;
    if (found == type_) return hint;
    const bool as_wide = size_of(found) == size_of(type_);
    const bool fits = bits_ == 0 ? as_wide && !is_signed(found) && is_signed(type_)
                                 : size_of(found) <= size_of(type_);
    if (!fits || !is_integer(found) || !is_integer(type_)) {
      throw bad("pixels are " + std::string(name_of(found)) + ", pixel_dtype says " +
                std::string(name_of(type_)));
    }
    hint.image.type = type_;
    hint.bytes = hint.image.bytes();
    return hint;
  }

  std::optional<size_t> decode(Bytes payload, Target& target) const override {
    if (bits_ == 0) return codec_.decode(payload, target);
    ImageShape image = codec_.decoded_size(payload).image;
    const PixelType found = std::exchange(image.type, type_);
    if (!target.grow(image.bytes()) || !codec_.decode(payload, target)) return std::nullopt;
    const uint64_t count = image.samples();
    if (size_of(found) < size_of(type_)) widen(target.data(), count, found, type_);
    if (is_signed(type_) && !is_signed(found)) extend_signs(target.data(), count, type_, bits_);
    return image.bytes();
  }

 private:
  const Codec& codec_;
  PixelType type_;
  int bits_;
};

// Pixels that are the bytes that a codec gives.
class RawPixels final : public Codec {
 public:
  RawPixels(const Codec& codec, const ImageShape& shape) : codec_(codec), shape_(shape) {}

  std::string_view name() const override { return codec_.name(); }
  std::string parameters() const override { return codec_.parameters(); }
  bool gives_images() const override { return true; }

  SizeHint decoded_size(Bytes payload) const override {
    const SizeHint hint = codec_.decoded_size(payload);
    const bool fits = hint.kind == SizeHint::Kind::exact ? hint.bytes == shape_.bytes()
                                                         : hint.bytes >= shape_.bytes();
    if (!fits) throw other_size(std::to_string(hint.bytes));
    return {SizeHint::Kind::exact, shape_.bytes(), shape_};
  }

  std::optional<size_t> decode(Bytes payload, Target& target) const override {
    if (!target.grow(shape_.bytes())) return std::nullopt;
    // No larger than the image: what does not fit is none.
    Target image(target.data(), shape_.bytes());
    const auto size = codec_.decode(payload, image);
    if (!size) throw other_size("more");
    if (*size != shape_.bytes()) throw other_size(std::to_string(*size));
    return size;
  }

 private:
  Error other_size(const std::string& bytes) const {
    return bad("record has " + bytes + " bytes, the index table says " + describe(shape_) +
               ", which has " + std::to_string(shape_.bytes()));
  }

  const Codec& codec_;
  ImageShape shape_;
};

// Only packs with several codecs have records that do not tell their shape.
std::optional<TableValues> sizes_of(const Pack& pack, const char* name,
                                    std::span<const int64_t> rows) {
  if (!pack.layout().has_codec_ids()) return std::nullopt;
  return TableValues::find(*pack.index(), name, rows);
}

uint32_t size_in(const std::optional<TableValues>& column, const char* name, int64_t row,
                 uint32_t limit) {
  const auto value = column ? column->integer(row) : std::nullopt;
  if (!value) throw Error(Error::Kind::pack, std::string(name) + " is missing");
  if (*value < 1 || *value > limit) {
    throw Error(Error::Kind::pack, std::string(name) + " is " + std::to_string(*value));
  }
  return static_cast<uint32_t>(*value);
}

}  // namespace

PixelDecoders::PixelDecoders(const Pack& pack, std::span<const int64_t> rows)
    : pack_(pack),
      has_pixels_(TableValues::find(*pack.index(), "has_pixel_data", rows)),
      dtypes_(TableValues::find(*pack.index(), "pixel_dtype", rows)),
      bits_(TableValues::find(*pack.index(), "bits_stored", rows)),
      rows_(sizes_of(pack, "rows", rows)),
      columns_(sizes_of(pack, "columns", rows)),
      samples_(sizes_of(pack, "samples_per_pixel", rows)) {}

std::optional<int64_t> PixelDecoders::codec_id(const Span& span) const {
  if (!pack_.layout().has_codec_ids()) return std::nullopt;
  return pack_.header().record_codecs[span.codec].id;
}

ImageShape PixelDecoders::shape(int64_t row, PixelType type) const {
  return {size_in(rows_, "rows", row, UINT32_MAX), size_in(columns_, "columns", row, UINT32_MAX),
          size_in(samples_, "samples_per_pixel", row, 4), type};
}

const Codec& PixelDecoders::decoder(int64_t row, const Span& span, const Codec& codec) {
  if (span.length == 0 && has_pixels_ && !has_pixels_->boolean(row).value_or(true)) {
    return no_image();
  }
  const auto id = codec_id(span);
  const bool is_raw = id == pixels_zstd && codec.name() == "zstd";
  if (!is_raw && !codec.gives_images()) return codec;
  const auto name = dtypes_ ? dtypes_->bytes(row) : std::nullopt;
  const auto type = name ? pixel_type(*name) : std::nullopt;
  if (is_raw) {
    if (!type) throw Error(Error::Kind::pack, "pixel_dtype says no type of pixels");
    const ImageShape image = shape(row, *type);
    auto& raw = raw_[{*type, image.height, image.width, image.channels}];
    if (!raw) raw = std::make_unique<RawPixels>(codec, image);
    return *raw;
  }
  if (!type) return codec;
  int64_t bits = 0;
  if (codec.name() != "jxl" || id.value_or(pixels_jxl) != pixels_jxl) {
    const int64_t width = static_cast<int64_t>(size_of(*type)) * 8;
    bits = bits_ ? bits_->integer(row).value_or(width) : width;
    if (bits < 1 || bits > width) {
      throw Error(Error::Kind::pack, "bits_stored is " + std::to_string(bits) +
                                         ", pixel_dtype says " + std::string(*name));
    }
  }
  auto& typed = typed_[{&codec, *type, bits}];
  if (!typed) typed = std::make_unique<TypedPixels>(codec, *type, static_cast<int>(bits));
  return *typed;
}

}  // namespace iac::dicom
