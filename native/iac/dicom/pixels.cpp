#include "iac/dicom/pixels.h"

#include <string>

#include "iac/dicom/headers.h"
#include "iac/error.h"

namespace iac::dicom {
namespace {

class NoPixels final : public Codec {
 public:
  std::string_view name() const override { return "none"; }
  std::string parameters() const override { return ""; }
  SizeHint decoded_size(Bytes) const override { return {SizeHint::Kind::exact, 0}; }
  std::optional<size_t> decode(Bytes, Target&) const override { return 0; }
};

// The upper bits of numbers of `bits` bits made those of the sign.
template <class T>
void extend_sign(std::byte* pixels, size_t size, int bits) {
  const int unused = static_cast<int>(sizeof(T)) * 8 - bits;
  for (size_t i = 0; i + sizeof(T) <= size; i += sizeof(T)) {
    const auto moved = static_cast<T>(static_cast<uint32_t>(load<T>(pixels + i)) << unused);
    const auto value = static_cast<T>(moved >> unused);
    std::memcpy(pixels + i, &value, sizeof value);
  }
}

PixelType unsigned_type(PixelType type) {
  if (type == PixelType::int8) return PixelType::uint8;
  return type == PixelType::int16 ? PixelType::uint16 : type;
}

// Images whose pixels are of a type that their codec has no word for.
class TypedPixels final : public Codec {
 public:
  TypedPixels(const Codec& codec, PixelType type, int bits)
      : codec_(codec), type_(type), bits_(bits) {}

  std::string_view name() const override { return codec_.name(); }
  std::string parameters() const override { return codec_.parameters(); }

  SizeHint decoded_size(Bytes payload) const override {
    SizeHint hint = codec_.decoded_size(payload);
    PixelType& type = hint.image.type;
    if (hint.image.channels == 0 || type == type_) return hint;
    if (type != unsigned_type(type_)) {
      throw bad("pixels are " + std::string(name_of(type)) + ", pixel_dtype says " +
                std::string(name_of(type_)));
    }
    type = type_;
    return hint;
  }

  std::optional<size_t> decode(Bytes payload, Target& target) const override {
    const auto size = codec_.decode(payload, target);
    if (size && type_ == PixelType::int16) extend_sign<int16_t>(target.data(), *size, bits_);
    if (size && type_ == PixelType::int8) extend_sign<int8_t>(target.data(), *size, bits_);
    return size;
  }

 private:
  const Codec& codec_;
  PixelType type_;
  int bits_;
};

std::optional<TableValues> values_of(const Table& index, const char* name,
                                     std::span<const int64_t> rows) {
  const auto column = index.find(name);
  if (!column) return std::nullopt;
  return TableValues(index, *column, rows);
}

}  // namespace

PixelDecoders::PixelDecoders(const Table& index, std::span<const int64_t> rows)
    : has_pixels_(values_of(index, "has_pixel_data", rows)),
      dtypes_(values_of(index, "pixel_dtype", rows)),
      bits_(values_of(index, "bits_stored", rows)) {}

const Codec& PixelDecoders::decoder(int64_t row, const Span& span, const Codec& codec) {
  static const NoPixels no_pixels;
  if (span.length == 0 && has_pixels_ && !has_pixels_->boolean(row).value_or(true)) {
    return no_pixels;
  }
  const auto name = dtypes_ ? dtypes_->bytes(row) : std::nullopt;
  if (!name || name->empty()) return codec;
  const auto type = pixel_type(*name);
  if (!type) return codec;  // no type of images: bytes
  // JPEG XL streams were made of whole signed numbers, others of the bits that are in use.
  const int64_t width = static_cast<int64_t>(size_of(*type)) * 8;
  int64_t bits = width;
  if (codec.name() != "jxl" && bits_) bits = bits_->integer(row).value_or(width);
  if (bits < 1 || bits > width) {
    throw Error(Error::Kind::pack, "bits_stored is " + std::to_string(bits) +
                                       ", pixel_dtype says " + std::string(*name));
  }
  auto& typed = typed_[{&codec, *type, bits}];
  if (!typed) typed = std::make_unique<TypedPixels>(codec, *type, static_cast<int>(bits));
  return *typed;
}

bool is_without_pixels(const Pack& pack, const Batch& batch, size_t record) {
  const auto* offsets = reinterpret_cast<const uint64_t*>(batch.offsets.data());
  return is_dicom(pack) && offsets[record] == offsets[record + 1];
}

}  // namespace iac::dicom
