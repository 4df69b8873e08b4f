#include "iac/codec/codecs.h"

namespace iac {
namespace {

class None final : public ByteCodec {
 public:
  std::string_view name() const override { return "none"; }
  std::string parameters() const override { return {}; }

  SizeHint decoded_size(Bytes payload) const override {
    return {SizeHint::Kind::exact, payload.size()};
  }

  std::optional<size_t> decode(Bytes payload, Target& target) const override {
    if (!target.grow(payload.size())) return std::nullopt;
    if (!payload.empty()) std::memcpy(target.data(), payload.data(), payload.size());
    return payload.size();
  }

  void encode(Bytes object, std::vector<std::byte>& out) const override {
    out.insert(out.end(), object.begin(), object.end());
  }
};

}  // namespace

std::shared_ptr<const Codec> make_none(Params&) { return std::make_shared<None>(); }

}  // namespace iac
