// JPEG 2000 (ISO 15444-1) and its high-throughput form (ISO 15444-15). Which of the two a payload
// is stands in its codestream; `profile` says what to write.
#include <algorithm>

#include "iac/codec/codecs.h"
#include "iac/codec/jpeg2000/boxes.h"
#include "iac/codec/jpeg2000/codestream.h"
#include "iac/codec/jpeg2000/openjpeg.h"
#include "iac/codec/jpeg2000/openjph.h"
#include "iac/codec/jpeg2000/packets.h"
#include "iac/codec/jpeg2000/planes.h"

namespace iac {
namespace {

struct Payload {
  j2k::Boxes boxes;
  j2k::Codestream stream;
};

class Jpeg2000 final : public ImageCodec {
 public:
  Jpeg2000(bool ht, bool jp2, bool lossless, bool ycbcr)
      : ht_(ht), jp2_(jp2), lossless_(lossless), ycbcr_(ycbcr) {}

  std::string_view name() const override { return "jpeg2000"; }

  std::string parameters() const override {
    return std::string("{\"profile\": \"") + (ht_ ? "ht" : "classic") + "\", \"container\": \"" +
           (jp2_ ? "jp2" : "j2k") + "\", \"lossless\": " + (lossless_ ? "true" : "false") +
           (ycbcr_ ? ", \"encoded_color_space\": \"YCbCr\"}" : "}");
  }

  ImageShape check_whole(Bytes payload) const override {
    const Payload parsed = parse(payload);
    check_end(parsed.boxes.codestream.subspan(parsed.stream.bytes.size()));
    return shape_of(parsed);
  }

 protected:
  ImageShape shape_of(Bytes payload) const override { return shape_of(parse(payload)); }

  void decode_pixels(Bytes payload, const ImageShape& shape, std::byte* pixels) const override {
    Payload parsed = parse(payload);
    std::vector<std::byte> copy;
    if (is_wrongly_marked(parsed.stream)) clear_transform(parsed.stream, copy);
    if (parsed.stream.is_ht) check_bodies(parsed.stream);
    if (parsed.stream.plain_ht.has_value() && !needs_conversion(parsed.boxes, parsed.stream)) {
      check_packets(*parsed.stream.plain_ht);
      decode_openjph(parsed.stream, shape, pixels);
      return;
    }
    decode_openjpeg(parsed.stream, [&](const std::vector<const int32_t*>& components) {
      if (!needs_conversion(parsed.boxes, parsed.stream)) {
        fill(parsed, components, shape, pixels);
        return;
      }
      const auto planes = convert(parsed.boxes, parsed.stream, components);
      std::vector<const int32_t*> channels;
      for (const auto& plane : planes) channels.push_back(plane.data());
      fill(parsed, channels, shape, pixels);
    });
  }

  void encode_pixels(const ImageShape& shape, const std::byte* pixels,
                     std::vector<std::byte>& out) const override {
    if (jp2_) throw refused("container jp2 is for decoding only");
    if (ycbcr_) throw refused("encoded_color_space YCbCr is for decoding only");
    if (shape.type != PixelType::uint8 && shape.type != PixelType::uint16) {
      throw refused(std::string(name_of(shape.type)) + " cannot be stored, uint8 and uint16 can");
    }
    if (shape.channels != 1 && shape.channels != 3 && shape.channels != 4) {
      throw refused("images have 1, 3 or 4 channels, not " + std::to_string(shape.channels));
    }
    if (std::max(shape.width, shape.height) > INT32_MAX) throw refused("the image is too large");
    (ht_ ? j2k::encode_openjph : j2k::encode_openjpeg)(shape, pixels, lossless_, out);
  }

 private:
  Payload parse(Bytes payload) const {
    Payload parsed;
    parsed.boxes = j2k::read_boxes(payload);
    parsed.stream = j2k::read_codestream(parsed.boxes.codestream);
    // A transform that the codestream itself names leads to RGB.
    const bool is_bare = parsed.boxes.colour == j2k::Colour::unspecified;
    if (ycbcr_ && is_bare && !parsed.stream.has_transform) parsed.boxes.colour = j2k::Colour::sycc;
    return parsed;
  }

  ImageShape shape_of(const Payload& payload) const {
    const j2k::Component& first = payload.stream.components[0];
    const size_t count = payload.stream.components.size();
    for (const j2k::Component& component : payload.stream.components) {
      if (component.precision != first.precision || component.is_signed != first.is_signed) {
        throw bad("components of different precision or sign are not supported");
      }
      if (component.dx % first.dx != 0 || component.dy % first.dy != 0) {
        throw bad("a first component that is smaller than others is not supported");
      }
    }
    if (first.precision > 16) {
      throw bad("precision of " + std::to_string(first.precision) + " bits is not supported");
    }
    if (!payload.boxes.order.empty() && payload.boxes.order.size() != channels_of(payload)) {
      throw bad("channel definition is not of as many channels as there are");
    }
    if (payload.boxes.palette.has_value() && (count != 1 || first.is_signed)) {
      throw bad("a palette needs one unsigned component");
    }
    return {first.height, first.width, channels_of(payload),
            j2k::type_of(precision_of(payload), first.is_signed)};
  }

  static uint32_t channels_of(const Payload& payload) {
    const auto& palette = payload.boxes.palette;
    return static_cast<uint32_t>(palette.has_value() ? palette->columns.size()
                                                     : payload.stream.components.size());
  }

  static uint32_t precision_of(const Payload& payload) {
    const auto& palette = payload.boxes.palette;
    return palette.has_value() ? palette->precision : payload.stream.components[0].precision;
  }

  // Some writers of packs under this profile say in their codestreams that three components are
  // transformed when they are not. They are known by writing no comment, which OpenJPH does.
  bool is_wrongly_marked(const j2k::Codestream& stream) const {
    return ht_ && stream.is_ht && stream.has_transform && !stream.has_comment;
  }

  static void clear_transform(j2k::Codestream& stream, std::vector<std::byte>& copy) {
    copy.assign(stream.bytes.begin(), stream.bytes.end());
    copy[stream.transform_at] = std::byte{0};
    stream.bytes = copy;
    stream.has_transform = false;
  }

  static void fill(const Payload& payload, const std::vector<const int32_t*>& channels,
                   const ImageShape& shape, std::byte* pixels) {
    const bool is_signed = payload.stream.components[0].is_signed;
    const j2k::Range range = j2k::range_of(precision_of(payload), is_signed);
    const uint64_t pitch = uint64_t{shape.width} * shape.channels * size_of(shape.type);
    std::vector<const int32_t*> rows = channels;
    for (uint32_t y = 0; y < shape.height; ++y) {
      interleave(rows.data(), shape.channels, shape.width, range, shape.type, pixels + y * pitch);
      for (const int32_t*& row : rows) row += shape.width;
    }
  }

  bool ht_, jp2_, lossless_;
  bool ycbcr_;  // what bare codestreams hold
};

}  // namespace

std::shared_ptr<const Codec> make_jpeg2000(Params& params) {
  const bool ht = params.choice("profile", {"classic", "ht"}) == "ht";
  const bool is_given_twice = params.has("container") && params.has("codestream");
  const bool jp2 = params.choice("container", {"j2k", "jp2"}) == "jp2";
  const bool alias = params.choice("codestream", {"j2k", "jp2"}) == "jp2";
  if (is_given_twice && jp2 != alias) {
    throw params.bad("container and codestream are two names of one parameter and differ");
  }
  const bool ycbcr = params.choice("encoded_color_space", {"RGB", "YCbCr"}) == "YCbCr";
  if (ht && (jp2 || alias)) throw params.bad("container jp2 is for profile classic only");
  return std::make_shared<Jpeg2000>(ht, jp2 || alias, params.boolean("lossless", true), ycbcr);
}

}  // namespace iac
