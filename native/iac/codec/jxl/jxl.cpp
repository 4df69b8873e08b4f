#include "iac/codec/jxl/jxl.h"

#include "iac/codec/codecs.h"

namespace iac {
namespace {

constexpr int default_effort = 7;
constexpr double default_distance = 1.0;
constexpr double max_distance = 25.0;

class Jxl final : public ImageCodec {
 public:
  Jxl(const jxl::Settings& settings, std::optional<bool> container)
      : settings_(settings), container_(container) {
    settings_.container = container.value_or(false);
  }

  std::string_view name() const override { return "jxl"; }

  std::string parameters() const override {
    const auto text = [](bool value) { return value ? "true" : "false"; };
    return std::string("{\"lossless\": ") + text(settings_.lossless) +
           ", \"distance\": " + nlohmann::json(settings_.distance).dump() +
           ", \"effort\": " + std::to_string(settings_.effort) +
           ", \"usecontainer\": " + (container_.has_value() ? text(*container_) : "null") + "}";
  }

 protected:
  ImageShape shape_of(Bytes payload) const override { return jxl::read_shape(payload); }

  void decode_pixels(Bytes payload, const ImageShape& shape, std::byte* pixels) const override {
    jxl::decode(payload, shape, pixels);
  }

  void encode_pixels(const ImageShape& shape, const std::byte* pixels,
                     std::vector<std::byte>& out) const override {
    jxl::encode(settings_, shape, pixels, out);
  }

 private:
  jxl::Settings settings_;
  std::optional<bool> container_;  // as it was given
};

}  // namespace

std::shared_ptr<const Codec> make_jxl(Params& params) {
  jxl::Settings settings;
  settings.lossless = params.boolean("lossless", false);
  settings.distance = params.optional_number("distance").value_or(default_distance);
  settings.effort = params.optional_integer("effort", 1, 10).value_or(default_effort);
  // Lossless images have no distance, but headers keep one.
  const bool possible = settings.distance > 0 || (settings.lossless && settings.distance == 0);
  if (!possible || settings.distance > max_distance) {
    throw params.bad("distance is " + nlohmann::json(settings.distance).dump() +
                     ", expected a number above 0 and at most 25");
  }
  return std::make_shared<Jxl>(settings, params.optional_boolean("usecontainer"));
}

}  // namespace iac
