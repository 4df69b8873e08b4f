// The codecs of records: one file each, behind this interface. A codec is immutable and may be
// used by any number of threads at once; its library runs single-threaded inside.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iac/bytes.h"
#include "iac/error.h"
#include "iac/image.h"

namespace iac {

// Where a record is decoded to. A fixed place cannot grow, scratch memory can.
class Target {
 public:
  Target(std::byte* data, size_t capacity) : data_(data), capacity_(capacity) {}
  virtual ~Target() = default;

  std::byte* data() const { return data_; }
  size_t capacity() const { return capacity_; }

  // Makes room for `needed` bytes, keeping those written; false when there can be no such room.
  virtual bool grow(size_t needed) { return needed <= capacity_; }

 protected:
  std::byte* data_;
  size_t capacity_;
};

// What a payload tells of its decoded size before it is decoded.
struct SizeHint {
  enum class Kind {
    exact,  // `bytes` it is, or the payload is damaged
    bound,  // at most `bytes`
    unknown,
  };
  Kind kind = Kind::unknown;
  uint64_t bytes = 0;
  ImageShape image = {};  // what image codecs say besides
};

class Codec {
 public:
  virtual ~Codec() = default;

  virtual std::string_view name() const = 0;

  // What goes into the header's codec_params, as JSON; empty when that is left out.
  virtual std::string parameters() const = 0;

  // Whether what it decodes to are images, of which some may be missing.
  virtual bool gives_images() const { return false; }

  // Throws Error when the payload is damaged beyond doubt.
  virtual SizeHint decoded_size(Bytes payload) const = 0;

  // Decodes to the start of `target`: the decoded size, or nothing when the target could not grow
  // as far as needed. Throws Error when the payload is damaged.
  virtual std::optional<size_t> decode(Bytes payload, Target& target) const = 0;

 protected:
  // A payload that cannot be decoded, or data that cannot be encoded.
  Error bad(const std::string& reason) const {
    return {Error::Kind::codec, std::string(name()) + ": " + reason};
  }
};

// A codec of bytes.
class ByteCodec : public Codec {
 public:
  // Appends the encoded object to `out`.
  virtual void encode(Bytes object, std::vector<std::byte>& out) const = 0;
};

// A codec of images, see image.h. An image's shape stands at the start of its payload.
class ImageCodec : public Codec {
 public:
  bool gives_images() const final { return true; }
  SizeHint decoded_size(Bytes payload) const final;
  std::optional<size_t> decode(Bytes payload, Target& target) const final;

  // The shape of the image in a payload that is whole, found without decoding it: its structure is
  // walked through up to its end, behind which there may be padding. Throws Error where something
  // is cut, missing or contradicts itself. Damage inside of coded samples is left to decode(), and
  // so is all behind the shape for codecs that do not know better.
  virtual ImageShape check_whole(Bytes payload) const;

  // Appends the encoded image of shape.bytes() bytes to `out`. Throws Error(argument) for a shape,
  // a type or a value that the codec does not store exactly as its parameters promise.
  void encode(const ImageShape& shape, const std::byte* pixels, std::vector<std::byte>& out) const;

 protected:
  // The shape of the image in a payload, allocating nothing of the image's size.
  virtual ImageShape shape_of(Bytes payload) const = 0;
  // Fills shape.bytes() bytes at `pixels`; `shape` is what shape_of() said.
  virtual void decode_pixels(Bytes payload, const ImageShape& shape, std::byte* pixels) const = 0;
  virtual void encode_pixels(const ImageShape& shape, const std::byte* pixels,
                             std::vector<std::byte>& out) const = 0;

  // Throws Error unless what stands behind an image is padding: bytes of 00 or FF.
  void check_end(Bytes behind) const;

  // An image that cannot be encoded.
  Error refused(const std::string& reason) const {
    return {Error::Kind::argument, "codec " + std::string(name()) + ": " + reason};
  }
};

// The codec of that name. `params` is a JSON object; an unknown or impossible parameter is an
// Error.
std::shared_ptr<const Codec> make_codec(std::string_view name, std::string_view params);

// The codec to decode what is stored under that name: whatever parameters other writers left in a
// header, those that decoding needs are taken and the rest passed over.
std::shared_ptr<const Codec> make_decoder(std::string_view name, std::string_view params);

}  // namespace iac
