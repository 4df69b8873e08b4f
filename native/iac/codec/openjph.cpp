#include "iac/codec/openjph.h"

#include <openjph/ojph_arch.h>
#include <openjph/ojph_base.h>
#include <openjph/ojph_codestream.h>
#include <openjph/ojph_file.h>
#include <openjph/ojph_mem.h>
#include <openjph/ojph_message.h>
#include <openjph/ojph_params.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include "iac/codec/j2k_planes.h"
#include "iac/codec/j2k_reader.h"

namespace iac::j2k {
namespace {

// What the library says of a payload, kept by the thread that it says it to. A warning is of
// something that it passes over, which leaves other pixels.
struct Complaint {
  char text[256];
  size_t size = 0;
};
thread_local Complaint complaint;

ssize_t complain(void*, const char* text, size_t size) {
  const size_t taken = std::min(size, sizeof complaint.text - complaint.size);
  std::memcpy(complaint.text + complaint.size, text, taken);
  complaint.size += taken;
  return static_cast<ssize_t>(size);
}

// "ojph error 0x... at file:line: what is wrong"
std::string reason() {
  std::string text(complaint.text, complaint.size);
  const size_t place = text.find(" at ");
  const size_t start = place == std::string::npos ? place : text.find(": ", place);
  if (start != std::string::npos) text.erase(0, start + 2);
  text.erase(std::min(text.find('\n'), text.size()));
  return text.empty() ? "unknown reason" : text;
}

// Streams and tables of the library are global and set without a lock: once, before any use. Its
// errors are thrown only where there is a stream to print them to; handlers given to its
// configure_error() are ignored by release 0.9.
void set_up() {
  static const bool done = [] {
    FILE* stream = fopencookie(nullptr, "w", {nullptr, complain, nullptr, nullptr});
    if (stream == nullptr) throw std::bad_alloc();
    std::setvbuf(stream, nullptr, _IONBF, 0);
    ojph::set_error_stream(stream);
    ojph::set_warning_stream(stream);
    ojph::set_info_stream(nullptr);
    const ojph::codestream first;
    return true;
  }();
  static_cast<void>(done);
  complaint.size = 0;
}

class Output final : public ojph::outfile_base {
 public:
  explicit Output(std::vector<std::byte>& out) : out_(out), start_(out.size()) {}

  size_t write(const void* data, size_t size) override {
    const auto* from = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), from, from + size);
    return size;
  }
  ojph::si64 tell() override { return static_cast<ojph::si64>(out_.size() - start_); }

 private:
  std::vector<std::byte>& out_;
  size_t start_;
};

// The library throws a plain text where it has no memory.
template <class Work>
void guarded(const char* doing, Work work) {
  set_up();
  try {
    work();
  } catch (const char*) {
    throw std::bad_alloc();
  } catch (const std::runtime_error&) {
    throw bad(std::string(doing) + ": " + reason());
  }
  if (complaint.size > 0) throw bad(std::string(doing) + ": " + reason());
}

template <class T>
uint32_t span_of(const T* samples, uint64_t count) {
  T low = samples[0], high = samples[0];
  for (uint64_t i = 0; i < count; ++i) {
    low = std::min(low, samples[i]);
    high = std::max(high, samples[i]);
  }
  return high - low + 1U;
}

// The step of the irreversible transform, as a part of the type's range: a 64th of the values that
// the image has, so that 12 bits in a uint16 lose no more than 8 in a uint8; at least one value.
float quantization(const ImageShape& shape, const std::byte* pixels) {
  const bool is_byte = size_of(shape.type) == 1;
  const uint32_t span = is_byte
                            ? span_of(reinterpret_cast<const uint8_t*>(pixels), shape.samples())
                            : span_of(reinterpret_cast<const uint16_t*>(pixels), shape.samples());
  return std::max(1.0F, static_cast<float>(span) / 64) / (is_byte ? 256.0F : 65536.0F);
}

// Release 0.9 forgets the lossy transform of a lone row, and codes what its memory held before: the
// image is not halved that far.
uint32_t halvings(const ImageShape& shape, bool lossless) {
  uint32_t count = decompositions(shape.width, shape.height);
  while (!lossless && count > 0 && (shape.height - 1) >> count == 0) --count;
  return count;
}

}  // namespace

void decode_openjph(const Codestream& stream, const ImageShape& shape, std::byte* pixels) {
  const Component& component = stream.components[0];
  const Range range = range_of(component.precision, component.is_signed);
  const uint64_t pitch = uint64_t{shape.width} * shape.channels * size_of(shape.type);
  guarded("payload does not decode", [&] {
    ojph::mem_infile file;
    file.open(reinterpret_cast<const ojph::ui8*>(stream.bytes.data()), stream.bytes.size());
    ojph::codestream codestream;
    codestream.read_headers(&file);
    codestream.set_planar(false);
    codestream.create();
    std::array<const int32_t*, max_components> rows{};
    for (uint32_t y = 0; y < shape.height; ++y) {
      for (uint32_t c = 0; c < shape.channels; ++c) {
        ojph::ui32 got = 0;
        const ojph::line_buf* line = codestream.pull(got);
        if (line == nullptr || got != c) throw bad("payload is damaged");
        rows[c] = line->i32;
      }
      interleave(rows.data(), shape.channels, shape.width, range, shape.type, pixels + y * pitch);
    }
    codestream.close();
  });
}

void encode_openjph(const ImageShape& shape, const std::byte* pixels, bool lossless,
                    std::vector<std::byte>& out) {
  const uint64_t pitch = uint64_t{shape.width} * shape.channels * size_of(shape.type);
  const auto depth = static_cast<ojph::ui32>(8 * size_of(shape.type));
  guarded("image does not encode", [&] {
    ojph::codestream codestream;
    ojph::param_siz size = codestream.access_siz();
    size.set_image_extent(ojph::point(shape.width, shape.height));
    size.set_num_components(shape.channels);
    for (uint32_t c = 0; c < shape.channels; ++c) {
      size.set_component(c, ojph::point(1, 1), depth, false);
    }
    ojph::param_cod coding = codestream.access_cod();
    coding.set_num_decomposition(halvings(shape, lossless));
    coding.set_block_dims(64, 64);
    coding.set_progression_order("RPCL");
    coding.set_color_transform(false);
    coding.set_reversible(lossless);
    if (!lossless) codestream.access_qcd().set_irrev_quant(quantization(shape, pixels));
    codestream.set_planar(false);
    Output file(out);
    codestream.write_headers(&file);
    ojph::ui32 channel = 0;
    ojph::line_buf* line = codestream.exchange(nullptr, channel);
    for (uint32_t y = 0; y < shape.height; ++y) {
      for (uint32_t c = 0; c < shape.channels; ++c) {
        take_channel(pixels + y * pitch, shape.type, shape.channels, channel, shape.width,
                     line->i32);
        line = codestream.exchange(line, channel);
      }
    }
    codestream.flush();
    codestream.close();
  });
}

}  // namespace iac::j2k
