#include <algorithm>

#include "iac/codec/codec.h"

namespace iac {

SizeHint ImageCodec::decoded_size(Bytes payload) const {
  if (payload.empty()) throw bad("empty payload");
  const ImageShape shape = shape_of(payload);
  if (shape.samples() == 0) throw bad("payload holds an image without pixels");
  return {SizeHint::Kind::exact, shape.bytes(), shape};
}

std::optional<size_t> ImageCodec::decode(Bytes payload, Target& target) const {
  const SizeHint hint = decoded_size(payload);
  if (!target.grow(hint.bytes)) return std::nullopt;
  decode_pixels(payload, hint.image, target.data());
  return hint.bytes;
}

ImageShape ImageCodec::check_whole(Bytes payload) const { return decoded_size(payload).image; }

void ImageCodec::check_end(Bytes behind) const {
  const bool is_padding = std::all_of(behind.begin(), behind.end(), [](std::byte byte) {
    return byte == std::byte{0} || byte == std::byte{0xFF};
  });
  if (!is_padding) throw bad("payload has more bytes behind its end than padding");
}

void ImageCodec::encode(const ImageShape& shape, const std::byte* pixels,
                        std::vector<std::byte>& out) const {
  if (shape.samples() == 0) throw refused("an image without pixels cannot be encoded");
  encode_pixels(shape, pixels, out);
}

}  // namespace iac
