#include "iac/codec/params.h"

#include "iac/error.h"

namespace iac {

static Error bad(const std::string& codec, const std::string& reason) {
  return {Error::Kind::argument, "codec " + codec + ": " + reason};
}

Params::Params(std::string_view codec, std::string_view json) : codec_(codec) {
  object_ = nlohmann::json::parse(json, nullptr, false);
  if (!object_.is_object()) throw bad(codec_, "parameters are not a JSON object");
}

int Params::integer(const char* name, int low, int high, int otherwise) {
  const auto found = object_.find(name);
  if (found == object_.end()) return otherwise;
  const nlohmann::json value = *found;
  object_.erase(found);
  const bool valid = value.is_number_unsigned()
                         ? high >= 0 && value.get<uint64_t>() <= static_cast<uint64_t>(high) &&
                               (low < 0 || value.get<uint64_t>() >= static_cast<uint64_t>(low))
                         : value.is_number_integer() && value.get<int64_t>() >= low &&
                               value.get<int64_t>() <= high;
  if (!valid) {
    throw bad(codec_, std::string(name) + " is " + value.dump() + ", expected an integer from " +
                          std::to_string(low) + " to " + std::to_string(high));
  }
  return value.get<int>();
}

void Params::finish() const {
  if (object_.empty()) return;
  throw bad(codec_, "unknown parameter '" + object_.begin().key() + "'");
}

}  // namespace iac
