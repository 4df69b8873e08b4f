// The codecs of records: one file each, behind this interface. A codec is immutable and may be
// used by any number of threads at once; its library runs single-threaded inside.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iac/bytes.h"

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
};

class Codec {
 public:
  virtual ~Codec() = default;

  virtual std::string_view name() const = 0;

  // What goes into the header's codec_params, as JSON; empty when that is left out.
  virtual std::string parameters() const = 0;

  // Throws Error when the payload is damaged beyond doubt.
  virtual SizeHint decoded_size(Bytes payload) const = 0;

  // Decodes to the start of `target`: the decoded size, or nothing when the target could not grow
  // as far as needed. Throws Error when the payload is damaged.
  virtual std::optional<size_t> decode(Bytes payload, Target& target) const = 0;

  // Appends the encoded object to `out`.
  virtual void encode(Bytes object, std::vector<std::byte>& out) const = 0;
};

// The codec of that name. `params` is a JSON object; an unknown or impossible parameter is an
// Error.
std::shared_ptr<const Codec> make_codec(std::string_view name, std::string_view params);

// The codec to decode what is stored under that name: whatever parameters other writers left in a
// header, those that decoding needs are taken and the rest passed over.
std::shared_ptr<const Codec> make_decoder(std::string_view name, std::string_view params);

}  // namespace iac
