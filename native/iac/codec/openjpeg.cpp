#include "iac/codec/openjpeg.h"

#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "iac/codec/j2k_planes.h"
#include "iac/codec/j2k_reader.h"

namespace iac::j2k {
namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Library = std::unique_ptr<opj_codec_t, Freed<opj_destroy_codec>>;
using Stream = std::unique_ptr<opj_stream_t, Freed<opj_stream_destroy>>;
using Image = std::unique_ptr<opj_image_t, Freed<opj_image_destroy>>;

template <class T>
T allocated(T object) {
  if (!object) throw std::bad_alloc();
  return object;
}

// The library's buffer, which larger reads and writes go past.
constexpr size_t stream_buffer = 4096;
constexpr auto end_of_stream = static_cast<OPJ_SIZE_T>(-1);

struct Input {
  Bytes bytes;
  size_t position = 0;
};

OPJ_SIZE_T read(void* to, OPJ_SIZE_T size, void* user) {
  auto& input = *static_cast<Input*>(user);
  const size_t count = std::min(size, input.bytes.size() - input.position);
  if (count == 0) return end_of_stream;
  std::memcpy(to, input.bytes.data() + input.position, count);
  input.position += count;
  return count;
}

OPJ_OFF_T skip(OPJ_OFF_T count, void* user) {
  auto& input = *static_cast<Input*>(user);
  if (count < 0 || static_cast<size_t>(count) > input.bytes.size() - input.position) return -1;
  input.position += static_cast<size_t>(count);
  return count;
}

OPJ_BOOL seek(OPJ_OFF_T position, void* user) {
  auto& input = *static_cast<Input*>(user);
  if (position < 0 || static_cast<size_t>(position) > input.bytes.size()) return OPJ_FALSE;
  input.position = static_cast<size_t>(position);
  return OPJ_TRUE;
}

struct Output {
  std::vector<std::byte>& bytes;
  bool failed = false;
};

// No exception may pass through the library.
OPJ_SIZE_T write(void* from, OPJ_SIZE_T size, void* user) {
  auto& output = *static_cast<Output*>(user);
  try {
    const auto* data = static_cast<const std::byte*>(from);
    output.bytes.insert(output.bytes.end(), data, data + size);
    return size;
  } catch (const std::bad_alloc&) {
    output.failed = true;
    return end_of_stream;
  }
}

// What the library complains of; the first is the cause.
struct Complaints {
  char text[200] = "";
};

void complain(const char* message, void* user) {
  auto& text = static_cast<Complaints*>(user)->text;
  if (text[0] != 0) return;
  const size_t size = std::min(strcspn(message, "\n"), sizeof text - 1);
  std::memcpy(text, message, size);
  text[size] = 0;
}

// Of warnings only: a tile part's count of parts that is one too small, as old writers left it, and
// markers that say nothing of the pixels.
void warn(const char* message, void* user) {
  const std::string_view text = message;
  if (text.starts_with("Non conformant codestream TPsot==TNsot")) return;
  if (text.starts_with("Unknown marker")) return;
  complain(message, user);
}

class Session {
 public:
  Session(opj_codec_t* codec, opj_stream_t* stream, const char* doing)
      : codec_(allocated(codec)), stream_(allocated(stream)), doing_(doing) {
    opj_set_error_handler(codec_.get(), complain, &complaints_);
    opj_set_warning_handler(codec_.get(), warn, &complaints_);
  }

  opj_codec_t* codec() { return codec_.get(); }
  opj_stream_t* stream() { return stream_.get(); }

  void check(OPJ_BOOL worked) const {
    if (!worked) throw failure();
  }

  // A warning is of damage that the library decoded past.
  void check_complaints() const {
    if (complaints_.text[0] != 0) throw failure();
  }

 private:
  Error failure() const {
    const std::string reason = complaints_.text;
    return bad(std::string(doing_) + (reason.empty() ? "" : ": " + reason));
  }

  Complaints complaints_;
  Library codec_;
  Stream stream_;
  const char* doing_;
};

Image image_of(const ImageShape& shape, const std::byte* pixels) {
  opj_image_cmptparm_t component{};
  component.dx = component.dy = 1;
  component.w = shape.width;
  component.h = shape.height;
  component.prec = static_cast<OPJ_UINT32>(8 * size_of(shape.type));
  std::vector<opj_image_cmptparm_t> components(shape.channels, component);
  const auto space = shape.channels < 3 ? OPJ_CLRSPC_GRAY : OPJ_CLRSPC_SRGB;
  Image image(allocated(opj_image_create(shape.channels, components.data(), space)));
  image->x1 = shape.width;
  image->y1 = shape.height;
  const uint64_t pitch = uint64_t{shape.width} * shape.channels * size_of(shape.type);
  for (uint32_t row = 0; row < shape.height; ++row) {
    for (uint32_t c = 0; c < shape.channels; ++c) {
      take_channel(pixels + row * pitch, shape.type, shape.channels, c, shape.width,
                   image->comps[c].data + size_t{row} * shape.width);
    }
  }
  return image;
}

}  // namespace

void decode_openjpeg(const Codestream& stream,
                     const std::function<void(const std::vector<const int32_t*>&)>& take) {
  Input input{stream.bytes};
  Session session(opj_create_decompress(OPJ_CODEC_J2K), opj_stream_create(stream_buffer, OPJ_TRUE),
                  "payload does not decode");
  opj_stream_set_user_data(session.stream(), &input, nullptr);
  opj_stream_set_user_data_length(session.stream(), stream.bytes.size());
  opj_stream_set_read_function(session.stream(), read);
  opj_stream_set_skip_function(session.stream(), skip);
  opj_stream_set_seek_function(session.stream(), seek);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  session.check(opj_setup_decoder(session.codec(), &parameters));
  session.check(opj_decoder_set_strict_mode(session.codec(), OPJ_TRUE));
  // Without this an environment variable could make it start threads.
  session.check(opj_codec_set_threads(session.codec(), 0));

  opj_image_t* header = nullptr;
  const OPJ_BOOL worked = opj_read_header(session.stream(), session.codec(), &header);
  const Image image(header);
  session.check(worked);
  session.check(opj_decode(session.codec(), session.stream(), image.get()));
  session.check(opj_end_decompress(session.codec(), session.stream()));
  session.check_complaints();

  std::vector<const int32_t*> components;
  session.check(image->numcomps == stream.components.size());
  for (size_t i = 0; i < stream.components.size(); ++i) {
    const opj_image_comp_t& got = image->comps[i];
    const Component& expected = stream.components[i];
    session.check(got.data != nullptr && got.w == expected.width && got.h == expected.height);
    components.push_back(got.data);
  }
  take(components);
}

void encode_openjpeg(const ImageShape& shape, const std::byte* pixels, bool lossless,
                     std::vector<std::byte>& out) {
  const Image image = image_of(shape, pixels);
  Output output{out};
  Session session(opj_create_compress(OPJ_CODEC_J2K), opj_stream_create(stream_buffer, OPJ_FALSE),
                  "image does not encode");
  opj_stream_set_user_data(session.stream(), &output, nullptr);
  opj_stream_set_write_function(session.stream(), write);
  opj_cparameters_t parameters;
  opj_set_default_encoder_parameters(&parameters);
  parameters.numresolution = static_cast<int>(decompositions(shape.width, shape.height)) + 1;
  parameters.irreversible = lossless ? 0 : 1;
  parameters.tcp_mct = 0;
  parameters.tcp_numlayers = 1;
  // All that the quantization leaves, but where that is too little to be of use: half of the raw
  // size at most.
  parameters.tcp_rates[0] = lossless ? 0 : 2;
  parameters.cp_disto_alloc = 1;
  session.check(opj_setup_encoder(session.codec(), &parameters, image.get()));
  session.check(opj_codec_set_threads(session.codec(), 0));
  OPJ_BOOL worked = opj_start_compress(session.codec(), image.get(), session.stream());
  worked = worked && opj_encode(session.codec(), session.stream());
  worked = worked && opj_end_compress(session.codec(), session.stream());
  if (output.failed) throw std::bad_alloc();
  session.check(worked);
}

}  // namespace iac::j2k
