// Decodes any bytes with any codec: the first byte picks it, the rest is the payload.
//
// Each payload is decoded twice, into memory that holds something else before. Pixels that a
// decoder leaves out would give away what was there.

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "iac/codec/codec.h"
#include "iac/error.h"

namespace {

using namespace iac;

constexpr uint64_t most_samples = 1 << 16;
constexpr size_t most_bytes = most_samples * 4, guard_bytes = 64;

// make_seeds.py knows the order.
constexpr std::array<std::pair<const char*, const char*>, 8> codecs{{
    {"zstd", "{}"},
    {"brotli", "{}"},
    {"jxl", "{}"},
    {"jpeg", "{}"},
    {"jpeg", R"({"encoded_color_space": "RGB"})"},
    {"jpeg2000", "{}"},
    {"jpeg2000", R"({"profile": "ht"})"},
    {"jpegls", "{}"},
}};

void require(bool holds) {
  if (!holds) std::abort();
}

// The decoded bytes, or nothing where they are damaged or too many.
std::string decoded(const Codec& codec, Bytes payload, char before) {
  try {
    const SizeHint hint = codec.decoded_size(payload);
    const bool is_exact = hint.kind == SizeHint::Kind::exact;
    if (hint.image.samples() > most_samples || (is_exact && hint.bytes > most_bytes)) return {};
    const size_t room = is_exact ? hint.bytes : most_bytes;
    std::string memory(room, before);
    memory.append(guard_bytes, '\x77');
    Target target(reinterpret_cast<std::byte*>(memory.data()), room);
    const auto size = codec.decode(payload, target);
    require(memory.substr(room) == std::string(guard_bytes, '\x77'));
    if (!size.has_value()) return {};
    require(*size <= room && (!is_exact || *size == hint.bytes));
    return memory.substr(0, *size);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto& [name, params] = codecs[data[0] % codecs.size()];
  const auto codec = make_decoder(name, params);
  const Bytes payload{reinterpret_cast<const std::byte*>(data) + 1, size - 1};
  require(decoded(*codec, payload, '\x00') == decoded(*codec, payload, '\xFF'));
  return 0;
}
