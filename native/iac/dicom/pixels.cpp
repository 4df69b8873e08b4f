#include "iac/dicom/pixels.h"

#include <string>
#include <utility>

#include "iac/codec/no_image.h"
#include "iac/dicom/exact_bytes.h"
#include "iac/dicom/frames.h"
#include "iac/dicom/samples.h"
#include "iac/error.h"

namespace iac::dicom {
namespace {

// The ids of codecs whose records are pixels: JPEG XL streams and, of pixels that those cannot
// hold, bytes under zstd. Packs with one codec have the former.
constexpr int64_t pixels_jxl = 0, pixels_zstd = 1;
// And of frames as they stood in a file that no codec of images decodes.
constexpr int64_t frame_zstd = 2, frame_none = 3;

// Images of a shape that is known, whose pixels may be of a type that their codec has no word for.
class TypedPixels final : public Codec {
 public:
  // `bits`: of a number that are in use; 0: a frame's numbers are whole, and as wide as its type.
  TypedPixels(const Codec& codec, const ImageShape& image, int bits)
      : codec_(codec), image_(image), bits_(bits) {}

  std::string_view name() const override { return codec_.name(); }
  std::string parameters() const override { return codec_.parameters(); }
  bool gives_images() const override { return true; }

  SizeHint decoded_size(Bytes payload) const override {
    const ImageShape found = codec_.decoded_size(payload).image;
    if (!fits(found)) {
      throw bad("record is an image of " + describe(found) + ", the index table says " +
                describe(image_));
    }
    return {SizeHint::Kind::exact, image_.bytes(), image_};
  }

  std::optional<size_t> decode(Bytes payload, Target& target) const override {
    if (bits_ == 0) return codec_.decode(payload, target);
    const PixelType found = codec_.decoded_size(payload).image.type;
    if (!target.grow(image_.bytes()) || !codec_.decode(payload, target)) return std::nullopt;
    const uint64_t count = image_.samples();
    if (size_of(found) < size_of(image_.type)) widen(target.data(), count, found, image_.type);
    if (is_integer(found) && is_signed(found) != is_signed(image_.type)) {
      clear_unused_bits(target.data(), count, image_.type, bits_);
    }
    return image_.bytes();
  }

 private:
  bool fits(ImageShape found) const {
    const PixelType type = std::exchange(found.type, image_.type);
    if (found != image_) return false;
    if (type == image_.type) return true;
    if (!is_integer(type) || !is_integer(image_.type)) return false;
    if (bits_ > 0) return size_of(type) <= size_of(image_.type);
    return size_of(type) == size_of(image_.type) && !is_signed(type);
  }

  const Codec& codec_;
  ImageShape image_;
  int bits_;
};

// Pixels that are the bytes that a codec gives.
class RawPixels final : public Codec {
 public:
  RawPixels(const Codec& codec, const ImageShape& image)
      : codec_(codec), pixels_(codec, image.bytes(), image), image_(image) {}

  std::string_view name() const override { return codec_.name(); }
  std::string parameters() const override { return codec_.parameters(); }
  bool gives_images() const override { return true; }

  SizeHint decoded_size(Bytes payload) const override {
    pixels_.check(payload);
    return {SizeHint::Kind::exact, image_.bytes(), image_};
  }

  std::optional<size_t> decode(Bytes payload, Target& target) const override {
    if (!target.grow(image_.bytes())) return std::nullopt;
    pixels_.decode(payload, target.data());
    return image_.bytes();
  }

 private:
  const Codec& codec_;
  ExactBytes pixels_;
  ImageShape image_;
};

Error contradiction(const std::string& reason) { return {Error::Kind::pack, reason}; }

uint32_t size_in(const std::optional<TableValues>& column, const char* name, int64_t row,
                 uint32_t limit) {
  const auto value = column ? column->integer(row) : std::nullopt;
  if (!value) throw contradiction(std::string(name) + " is missing");
  if (*value < 1 || *value > limit) {
    throw contradiction(std::string(name) + " is " + std::to_string(*value));
  }
  return static_cast<uint32_t>(*value);
}

}  // namespace

PixelDecoders::PixelDecoders(const Pack& pack, std::span<const int64_t> rows)
    : pack_(pack),
      has_pixels_(TableValues::find(*pack.index(), "has_pixel_data", rows)),
      dtypes_(TableValues::find(*pack.index(), "pixel_dtype", rows)),
      rows_(TableValues::find(*pack.index(), "rows", rows)),
      columns_(TableValues::find(*pack.index(), "columns", rows)),
      samples_(TableValues::find(*pack.index(), "samples_per_pixel", rows)),
      allocated_(TableValues::find(*pack.index(), "bits_allocated", rows)),
      stored_(TableValues::find(*pack.index(), "bits_stored", rows)),
      representation_(TableValues::find(*pack.index(), "pixel_representation", rows)) {
  if (pack.layout().has_codec_ids()) formats_.emplace(*pack.index(), rows);
}

std::optional<int64_t> PixelDecoders::codec_id(const Span& span) const {
  if (!pack_.layout().has_codec_ids()) return std::nullopt;
  return pack_.header().record_codecs[span.codec].id;
}

bool PixelDecoders::has_pixels(int64_t row, const Span& span) const {
  if (!has_pixels_) return true;
  const auto says = has_pixels_->boolean(row);
  if (!says) throw contradiction("has_pixel_data is missing");
  if (!*says && span.length > 0) {
    throw contradiction("has_pixel_data says none, its record has " + std::to_string(span.length) +
                        " bytes");
  }
  return *says;
}

ImageShape PixelDecoders::image(int64_t row) const {
  const auto name = dtypes_ ? dtypes_->bytes(row) : std::nullopt;
  const auto type = name ? pixel_type(*name) : std::nullopt;
  if (!type || type == PixelType::float16)
    throw contradiction("pixel_dtype says no type of pixels");
  return {size_in(rows_, "rows", row, UINT32_MAX), size_in(columns_, "columns", row, UINT32_MAX),
          samples_ ? size_in(samples_, "samples_per_pixel", row, 4) : 1, *type};
}

int PixelDecoders::bits_allocated(int64_t row, PixelType type) const {
  const auto width = static_cast<int64_t>(size_of(type)) * 8;
  const auto check = [&](const std::optional<TableValues>& column, const char* name,
                         int64_t expected, std::optional<int64_t> other = std::nullopt) {
    if (!column) return expected;
    const auto value = column->integer(row);
    if (!value) throw contradiction(std::string(name) + " is missing");
    if (*value == expected || value == other) return *value;
    throw contradiction(std::string(name) + " is " + std::to_string(*value) +
                        ", pixel_dtype says " + std::string(name_of(type)));
  };
  // Single bits are given as bytes.
  const auto single = type == PixelType::uint8 ? std::optional<int64_t>(1) : std::nullopt;
  const int64_t bits = check(allocated_, "bits_allocated", width, single);
  if (is_integer(type) && bits != 1) {
    check(representation_, "pixel_representation", is_signed(type) ? 1 : 0);
  }
  return static_cast<int>(bits);
}

int PixelDecoders::bits_stored(int64_t row, PixelType type) const {
  const auto width = static_cast<int64_t>(size_of(type)) * 8;
  const int64_t bits = stored_ ? stored_->integer(row).value_or(width) : width;
  if (bits < 1 || bits > width) {
    throw contradiction("bits_stored is " + std::to_string(bits) + ", pixel_dtype says " +
                        std::string(name_of(type)));
  }
  return static_cast<int>(bits);
}

const Codec& PixelDecoders::decoder(int64_t row, const Span& span, const Codec& codec) {
  if (!has_pixels(row, span)) return no_image();
  const auto id = codec_id(span);
  const bool is_raw = id == pixels_zstd && codec.name() == "zstd";
  const bool is_frame =
      (id == frame_zstd && codec.name() == "zstd") || (id == frame_none && codec.name() == "none");
  if (!is_raw && !is_frame && !codec.gives_images()) return codec;
  const ImageShape image = this->image(row);
  const int allocated = bits_allocated(row, image.type);
  if (is_raw) {
    auto& raw = raw_[image];
    if (!raw) raw = std::make_unique<RawPixels>(codec, image);
    return *raw;
  }
  if (is_frame) {
    const auto format = formats_->find(row, image, allocated);
    if (!format) return codec;
    auto& frames = frames_[{&codec, *format}];
    if (!frames) frames = frame_decoder(codec, *format);
    return *frames;
  }
  const bool is_whole = codec.name() == "jxl" && id.value_or(pixels_jxl) == pixels_jxl;
  const int bits = is_whole ? 0 : bits_stored(row, image.type);
  auto& typed = typed_[{&codec, image, bits}];
  if (!typed) typed = std::make_unique<TypedPixels>(codec, image, bits);
  return *typed;
}

}  // namespace iac::dicom
