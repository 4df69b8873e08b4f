// JPEG (ITU-T T.81): baseline, extended and progressive through libjpeg-turbo; the precisions that
// it lacks, 12 bits and everything lossless, through GDCM's libjpeg. Samples are not scaled:
// those of up to 8 bits are uint8, others uint16.
#include "iac/codec/codecs.h"
#include "iac/codec/jpeg/library.h"
#include "iac/codec/jpeg/stream.h"
#include "iac/error.h"

namespace iac {
namespace {

using jpeg::Header;
using jpeg::Process;

struct Settings {
  int quality = 90;
  bool lossless = false, progressive = false;
  std::string subsampling;
  std::optional<std::string> tables_base64;
  std::string encoded_color_space;
  bool has_color_space = false;  // it, or tables, were given
};

class Jpeg final : public ImageCodec {
 public:
  explicit Jpeg(Settings settings) : settings_(std::move(settings)) {
    if (settings_.tables_base64) tables_ = jpeg::read_tables(*settings_.tables_base64);
  }

  std::string_view name() const override { return "jpeg"; }

  std::string parameters() const override {
    const auto text = [](bool value) { return value ? "true" : "false"; };
    std::string json = "{\"quality\": " + std::to_string(settings_.quality) +
                       ", \"lossless\": " + text(settings_.lossless) +
                       ", \"progressive\": " + text(settings_.progressive) +
                       ", \"subsampling\": \"" + settings_.subsampling + "\"";
    if (settings_.has_color_space) {
      const auto& tables = settings_.tables_base64;
      json += ", \"tables_base64\": " + (tables ? "\"" + *tables + "\"" : "null") +
              ", \"encoded_color_space\": \"" + settings_.encoded_color_space + "\"";
    }
    return json + "}";
  }

  ImageShape check_whole(Bytes payload) const override {
    const Header header = jpeg::read_header(payload);
    check_end(payload.subspan(jpeg::check_scans(payload, header, tables_)));
    is_ycbcr(header);  // throws where that cannot be decoded
    return header.shape();
  }

 protected:
  ImageShape shape_of(Bytes payload) const override { return jpeg::read_header(payload).shape(); }

  void decode_pixels(Bytes payload, const ImageShape& shape, std::byte* pixels) const override {
    const Header header = jpeg::read_header(payload);
    const Bytes stream = payload.first(jpeg::check_scans(payload, header, tables_));
    const Bytes pieces[]{stream.first(2), Bytes(tables_.segments), stream.subspan(2)};
    const bool spliced = !tables_.segments.empty();
    const std::span<const Bytes> parts =
        spliced ? std::span<const Bytes>(pieces) : std::span<const Bytes>(&stream, 1);
    const jpeg::Decoding job{parts, shape, is_ycbcr(header), pixels};
    const std::string problem = decoder_of(header)(job);
    if (!problem.empty()) throw bad("payload does not decode: " + problem);
  }

  void encode_pixels(const ImageShape& shape, const std::byte* pixels,
                     std::vector<std::byte>& out) const override {
    check(shape);
    jpeg::Encoding job{shape, pixels, &out, settings_.quality, settings_.progressive};
    if (settings_.subsampling != "444") job.horizontal = 2;
    if (settings_.subsampling == "420") job.vertical = 2;
    const auto encode = !settings_.lossless              ? jpeg::encode_turbo
                        : shape.type == PixelType::uint8 ? jpeg::encode_gdcm8
                                                         : jpeg::encode_gdcm16;
    const std::string problem = encode(job);
    if (!problem.empty()) throw bad("cannot encode: " + problem);
  }

 private:
  static std::string (*decoder_of(const Header& header))(const jpeg::Decoding&) {
    if (header.process != Process::lossless) {
      return header.precision == 8 ? jpeg::decode_turbo : jpeg::decode_gdcm12;
    }
    return header.precision <= 8 ? jpeg::decode_gdcm8 : jpeg::decode_gdcm16;
  }

  // Whether three components are YCbCr and have to be converted. Samples without loss never are.
  // JFIF knows nothing else; then comes what the pack's header says, then what the stream does.
  bool is_ycbcr(const Header& header) const {
    if (header.count != 3) return false;
    const bool told = settings_.has_color_space && settings_.encoded_color_space == "YCbCr";
    if (header.process == Process::lossless) {
      if (told) throw bad("lossless YCbCr images are not converted to RGB");
      return false;
    }
    if (header.jfif) return true;
    if (settings_.has_color_space) return told;
    if (header.adobe_transform >= 0) return header.adobe_transform != 0;
    const auto& [first, second, third] = header.components;
    return !(first.id == 'R' && second.id == 'G' && third.id == 'B');
  }

  void check(const ImageShape& shape) const {
    const bool is_16_bit = shape.type == PixelType::uint16;
    if (shape.type != PixelType::uint8 && !is_16_bit) {
      throw refused(std::string(name_of(shape.type)) + " images cannot be stored");
    }
    if (is_16_bit && !settings_.lossless) throw refused("uint16 images need lossless=true");
    if (shape.channels != 1 && shape.channels != 3) {
      throw refused("images have 1 or 3 channels, not " + std::to_string(shape.channels));
    }
    if (shape.height > jpeg::max_side || shape.width > jpeg::max_side) {
      throw refused("images have at most " + std::to_string(jpeg::max_side) + " rows and columns");
    }
  }

  Settings settings_;
  jpeg::Tables tables_;
};

}  // namespace

std::shared_ptr<const Codec> make_jpeg(Params& params) {
  Settings settings;
  settings.quality = params.integer("quality", 1, 100, 90);
  settings.lossless = params.boolean("lossless", false);
  settings.progressive = params.boolean("progressive", false);
  if (settings.lossless && settings.progressive) {
    throw params.bad("progressive images are not lossless");
  }
  settings.subsampling = params.choice("subsampling", {"420", "422", "444"});
  settings.has_color_space = params.has("tables_base64") || params.has("encoded_color_space");
  settings.tables_base64 = params.optional_text("tables_base64");
  settings.encoded_color_space = params.choice("encoded_color_space", {"YCbCr", "RGB"});
  return std::make_shared<Jpeg>(std::move(settings));
}

}  // namespace iac
