// Decodes any bytes as a frame of DICOM: the first say its format, the rest is the frame.
//
// Each frame is decoded twice, into memory that holds something else before, as in codecs.cpp.

#include <cstdlib>
#include <cstring>
#include <string>

#include "iac/dicom/frames.h"
#include "iac/error.h"

using namespace iac;

namespace {

constexpr size_t format_bytes = 5, guard_bytes = 64;
constexpr uint64_t most_bytes = 1 << 18;

void require(bool holds) {
  if (!holds) std::abort();
}

// A format as frame_format.cpp lets pass: rows, columns, type, and two bytes of choices.
// make_seeds.py knows them.
dicom::FrameFormat format_of(const uint8_t* data) {
  using Encoding = dicom::FrameFormat::Encoding;
  using Colours = dicom::FrameFormat::Colours;
  dicom::FrameFormat format;
  const bool is_colour = data[3] & 1;
  const auto type = static_cast<PixelType>(data[2] % pixel_types);
  format.image = {data[0] + 1U, data[1] + 1U, is_colour ? 3U : 1U, type};
  const bool is_bytes = type == PixelType::uint8, may_be_ybr = is_colour && is_bytes;
  format.encoding = static_cast<Encoding>((data[3] / 2 & 7) % (may_be_ybr ? 6 : 3));
  format.bits_allocated = static_cast<int>(size_of(type)) * 8;
  format.bits_stored = data[4] % format.bits_allocated + 1;
  if (format.is_compressed()) {
    format.colours = Colours::ybr_full;
    return format;
  }
  format.planar = is_colour && data[3] & 64;
  const bool is_native = format.encoding != Encoding::rle;
  if (is_native && is_bytes && data[3] & 128) {
    format.bits_allocated = format.bits_stored = 1;
  } else if (may_be_ybr) {
    const bool may_be_halved = is_native && format.image.samples() % 2 == 0;
    format.colours = static_cast<Colours>(data[4] / 64 % (may_be_halved ? 3 : 2));
  }
  return format;
}

// The pixels, or nothing where they are damaged.
std::string decoded(const Codec& frames, Bytes payload, char before) {
  try {
    const SizeHint hint = frames.decoded_size(payload);
    require(hint.kind == SizeHint::Kind::exact && hint.bytes == hint.image.bytes());
    if (hint.bytes > most_bytes) return {};
    std::string memory(hint.bytes, before);
    memory.append(guard_bytes, '\x77');
    Target target(reinterpret_cast<std::byte*>(memory.data()), hint.bytes);
    require(frames.decode(payload, target) == hint.bytes);
    require(memory.substr(hint.bytes) == std::string(guard_bytes, '\x77'));
    return memory.substr(0, hint.bytes);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < format_bytes) return 0;
  static const auto none = make_decoder("none", "{}");
  const auto frames = dicom::frame_decoder(*none, format_of(data));
  const Bytes payload = as_bytes(data + format_bytes, size - format_bytes);
  require(decoded(*frames, payload, '\x00') == decoded(*frames, payload, '\xFF'));
  return 0;
}
