#include "iac/codec/params.h"

#include <algorithm>

namespace iac {

Params::Params(std::string_view codec, std::string_view json) : codec_(codec) {
  object_ = nlohmann::json::parse(json, nullptr, false);
  if (!object_.is_object()) throw bad("parameters are not a JSON object");
}

Error Params::bad(const std::string& reason) const {
  return {Error::Kind::argument, "codec " + codec_ + ": " + reason};
}

bool Params::is_null(const char* name) const {
  return object_.value(name, nlohmann::json()).is_null();
}

nlohmann::json Params::take(const char* name) {
  const auto found = object_.find(name);
  if (found == object_.end()) return nullptr;
  nlohmann::json value = *found;
  object_.erase(found);
  return value;
}

static bool is_within(const nlohmann::json& value, int low, int high) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    return high >= 0 && number <= static_cast<uint64_t>(high) &&
           (low < 0 || number >= static_cast<uint64_t>(low));
  }
  return value.is_number_integer() && value.get<int64_t>() >= low && value.get<int64_t>() <= high;
}

int Params::integer(const char* name, int low, int high, int otherwise) {
  if (!has(name)) return otherwise;
  const nlohmann::json value = take(name);
  if (is_within(value, low, high)) return value.get<int>();
  throw bad(std::string(name) + " is " + value.dump() + ", expected an integer from " +
            std::to_string(low) + " to " + std::to_string(high));
}

std::optional<int> Params::optional_integer(const char* name, int low, int high) {
  if (is_null(name)) {
    take(name);
    return std::nullopt;
  }
  return integer(name, low, high, 0);
}

bool Params::boolean(const char* name, bool otherwise) {
  if (!has(name)) return otherwise;
  const nlohmann::json value = take(name);
  if (value.is_boolean()) return value.get<bool>();
  throw bad(std::string(name) + " is " + value.dump() + ", expected true or false");
}

std::optional<bool> Params::optional_boolean(const char* name) {
  if (is_null(name)) {
    take(name);
    return std::nullopt;
  }
  return boolean(name, false);
}

std::optional<double> Params::optional_number(const char* name) {
  const nlohmann::json value = take(name);
  if (value.is_null()) return std::nullopt;
  if (value.is_number()) return value.get<double>();
  throw bad(std::string(name) + " is " + value.dump() + ", expected a number");
}

std::optional<std::string> Params::optional_text(const char* name) {
  const nlohmann::json value = take(name);
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return value.get<std::string>();
  throw bad(std::string(name) + " is not a text");
}

std::string Params::choice(const char* name, std::vector<std::string> choices) {
  if (!has(name)) return choices.front();
  const nlohmann::json value = take(name);
  if (value.is_string()) {
    const auto found = std::find(choices.begin(), choices.end(), value.get<std::string>());
    if (found != choices.end()) return *found;
  }
  std::string known;
  for (const std::string& choice : choices) known += (known.empty() ? "" : ", ") + choice;
  throw bad(std::string(name) + " is " + value.dump() + ", expected one of " + known);
}

void Params::keep(std::span<const std::string_view> names) {
  nlohmann::json kept = nlohmann::json::object();
  for (const auto& [key, value] : object_.items()) {
    if (std::find(names.begin(), names.end(), key) != names.end()) kept[key] = value;
  }
  object_ = std::move(kept);
}

void Params::finish() const {
  if (object_.empty()) return;
  throw bad("unknown parameter '" + object_.begin().key() + "'");
}

}  // namespace iac
