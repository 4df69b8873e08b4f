// Reading the JSON parameters of a codec, each once, so that what is left over is unknown.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace iac {

class Params {
 public:
  Params(std::string_view codec, std::string_view json);

  // An integer parameter within [low, high], or `otherwise` when it is not given. Throws Error.
  int integer(const char* name, int low, int high, int otherwise);

  // Throws Error naming the parameters that nobody asked for.
  void finish() const;

 private:
  std::string codec_;
  nlohmann::json object_;
};

}  // namespace iac
