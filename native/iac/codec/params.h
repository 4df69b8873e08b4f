// Reading the JSON parameters of a codec, each once, so that what is left over is unknown. Every
// value of the wrong kind is an Error(argument) that names codec and parameter.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iac/error.h"

namespace iac {

class Params {
 public:
  Params(std::string_view codec, std::string_view json);

  // Within [low, high].
  int integer(const char* name, int low, int high, int otherwise);
  bool boolean(const char* name, bool otherwise);
  // One of `choices`; the first stands for a parameter that is not given.
  std::string choice(const char* name, std::vector<std::string> choices);

  // Nothing where the parameter is null or not given.
  std::optional<int> optional_integer(const char* name, int low, int high);
  std::optional<bool> optional_boolean(const char* name);
  std::optional<double> optional_number(const char* name);
  std::optional<std::string> optional_text(const char* name);

  bool has(const char* name) const { return object_.contains(name); }

  // Forgets every parameter but these.
  void keep(std::span<const std::string_view> names);

  // Throws Error naming a parameter that nobody asked for.
  void finish() const;

  // A value that cannot be.
  Error bad(const std::string& reason) const;

 private:
  // Whether it is null or not given.
  bool is_null(const char* name) const;
  // The parameter's value, forgotten here; null where it is not given.
  nlohmann::json take(const char* name);

  std::string codec_;
  nlohmann::json object_;
};

}  // namespace iac
