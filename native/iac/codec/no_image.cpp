#include "iac/codec/no_image.h"

namespace iac {
namespace {

class NoImage final : public Codec {
 public:
  std::string_view name() const override { return "none"; }
  std::string parameters() const override { return ""; }
  bool gives_images() const override { return true; }
  SizeHint decoded_size(Bytes) const override { return {SizeHint::Kind::exact, 0}; }
  std::optional<size_t> decode(Bytes, Target&) const override { return 0; }
};

}  // namespace

const Codec& no_image() {
  static const NoImage codec;
  return codec;
}

}  // namespace iac
