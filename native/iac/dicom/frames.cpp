#include "iac/dicom/frames.h"

#include <string>
#include <vector>

#include "iac/codec/jpeg/stream.h"
#include "iac/dicom/exact_bytes.h"
#include "iac/dicom/rle.h"
#include "iac/dicom/samples.h"
#include "iac/error.h"

namespace iac::dicom {
namespace {

using Encoding = FrameFormat::Encoding;
using Colours = FrameFormat::Colours;

// Samples in the order of the frame, native byte order, made pixels.
void finish(const FrameFormat& format, bool planar, bool is_ybr, std::byte* samples,
            std::byte* out) {
  const ImageShape& image = format.image;
  const uint64_t pixels = image.samples() / image.channels;
  if (format.bits_stored < format.bits_allocated) {
    clear_unused_bits(samples, image.samples(), image.type, format.bits_stored);
  }
  if (planar) {
    interleave(samples, pixels, image.channels, size_of(image.type), out);
  }
  if (is_ybr) ybr_to_rgb(out, pixels);
}

class Frames : public Codec {
 public:
  Frames(const Codec& stored, const FrameFormat& format) : stored_(stored), format_(format) {}

  std::string_view name() const override { return stored_.name(); }
  std::string parameters() const override { return stored_.parameters(); }
  bool gives_images() const override { return true; }

  SizeHint decoded_size(Bytes payload) const override {
    check(payload);
    return {SizeHint::Kind::exact, format_.image.bytes(), format_.image};
  }

  std::optional<size_t> decode(Bytes payload, Target& target) const override {
    check(payload);
    const size_t bytes = format_.image.bytes();
    if (!target.grow(bytes)) return std::nullopt;
    if (!planar()) {
      read_samples(payload, target.data());
      finish(format_, false, is_ybr(payload), target.data(), target.data());
      return bytes;
    }
    std::vector<std::byte> samples(bytes);
    read_samples(payload, samples.data());
    finish(format_, true, is_ybr(payload), samples.data(), target.data());
    return bytes;
  }

 protected:
  // Throws Error for a payload that cannot be a frame.
  virtual void check(Bytes payload) const = 0;
  virtual bool planar() const = 0;
  virtual bool is_ybr(Bytes) const { return format_.colours != Colours::as_stored; }
  // Writes a frame's samples, native byte order, in their order.
  virtual void read_samples(Bytes payload, std::byte* samples) const = 0;

  const Codec& stored_;
  FrameFormat format_;
};

class NativeFrames final : public Frames {
 public:
  NativeFrames(const Codec& stored, const FrameFormat& format)
      : Frames(stored, format), frame_(stored, bytes_of(format), format.image) {}

 private:
  static uint64_t bytes_of(const FrameFormat& format) {
    const ImageShape& image = format.image;
    if (format.bits_allocated == 1) return (image.samples() + 7) / 8;
    if (format.colours == Colours::ybr_full_422) return image.samples() / 3 * 2;
    return image.bytes();
  }

  void check(Bytes payload) const override { frame_.check(payload); }
  bool planar() const override { return format_.planar; }

  void read_samples(Bytes payload, std::byte* samples) const override {
    const ImageShape& image = format_.image;
    if (frame_.bytes() == image.bytes() && format_.bits_allocated != 1) {
      frame_.decode(payload, samples);
      if (format_.encoding == Encoding::big_endian) {
        swap_bytes(samples, image.samples(), size_of(image.type));
      }
      return;
    }
    std::vector<std::byte> frame(frame_.bytes());
    frame_.decode(payload, frame.data());
    if (format_.colours == Colours::ybr_full_422) {
      return double_colours(frame.data(), image.samples() / 3, samples);
    }
    for (uint64_t i = 0; i < image.samples(); ++i) {  // PS3.5 8.1.1: from the lowest bit on
      samples[i] = frame[i / 8] >> (i % 8) & std::byte{1};
    }
  }

  ExactBytes frame_;
};

class RleFrames final : public Frames {
 public:
  using Frames::Frames;

 private:
  uint64_t pixels() const { return format_.image.samples() / format_.image.channels; }

  void check(Bytes payload) const override {
    check_rle(payload, pixels(), format_.image.channels, size_of(format_.image.type));
  }
  bool planar() const override { return format_.image.channels > 1; }

  void read_samples(Bytes payload, std::byte* samples) const override {
    decode_rle(payload, pixels(), format_.image.channels, size_of(format_.image.type), samples);
  }
};

// Those whose codec gives YBR_FULL as it is.
class CompressedFrames final : public Frames {
 public:
  CompressedFrames(const Codec& stored, const FrameFormat& format)
      : Frames(stored, format), codec_(decoder_of(format.encoding)) {}

 private:
  static std::shared_ptr<const Codec> decoder_of(Encoding encoding) {
    // Told that components are RGB it leaves them alone.
    if (encoding == Encoding::jpeg) {
      return make_decoder("jpeg", R"({"encoded_color_space": "RGB"})");
    }
    return make_decoder(encoding == Encoding::jpegls ? "jpegls" : "jpeg2000", "{}");
  }

  void check(Bytes payload) const override {
    const ImageShape found = codec_->decoded_size(payload).image;
    if (found == format_.image) return;
    throw Error(Error::Kind::codec, std::string(codec_->name()) + ": record is an image of " +
                                        describe(found) + ", the index table says " +
                                        describe(format_.image));
  }
  bool planar() const override { return false; }

  // JFIF is converted by the codec, and components called R, G and B are that, as in pydicom.
  bool is_ybr(Bytes payload) const override {
    if (format_.encoding != Encoding::jpeg) return true;
    const jpeg::Header header = jpeg::read_header(payload);
    const auto is_named = [&parts = header.components](std::string_view names) {
      return parts[0].id == names[0] && parts[1].id == names[1] && parts[2].id == names[2];
    };
    const bool is_converted = header.jfif && header.process != jpeg::Process::lossless;
    return !is_converted && !is_named("RGB") && !is_named("rgb");
  }

  void read_samples(Bytes payload, std::byte* samples) const override {
    Target target(samples, format_.image.bytes());
    codec_->decode(payload, target);
  }

  std::shared_ptr<const Codec> codec_;
};

}  // namespace

std::unique_ptr<const Codec> frame_decoder(const Codec& stored, const FrameFormat& format) {
  if (format.encoding == Encoding::rle) return std::make_unique<RleFrames>(stored, format);
  if (format.is_compressed()) return std::make_unique<CompressedFrames>(stored, format);
  return std::make_unique<NativeFrames>(stored, format);
}

}  // namespace iac::dicom
