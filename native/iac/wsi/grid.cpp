#include "iac/wsi/grid.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "iac/error.h"

namespace iac::wsi {
namespace {

using nlohmann::json;

Error bad(const char* name) {
  return {Error::Kind::pack, std::string("the header's ") + name + " is missing or wrong"};
}

int64_t count(const json& fields, const char* name) {
  const auto found = fields.find(name);
  if (found == fields.end() || !found->is_number_integer()) throw bad(name);
  const double value = found->get<double>();
  if (value < 1 || value > UINT32_MAX) throw bad(name);
  return found->get<int64_t>();
}

double length(const json& fields, const char* name) {
  const auto found = fields.find(name);
  if (found == fields.end() || !found->is_number()) throw bad(name);
  const auto value = found->get<double>();
  if (!std::isfinite(value) || value <= 0) throw bad(name);
  return value;
}

}  // namespace

Grid read_grid(const Pack& pack) {
  const json header = json::parse(pack.header().text);
  Grid grid{count(header, "tile_width"),
            count(header, "tile_height"),
            length(header, "native_mpp_x"),
            length(header, "native_mpp_y"),
            {1}};
  const auto levels = header.find("levels");
  if (levels == header.end()) return grid;
  if (!levels->is_array()) throw bad("levels");
  for (const json& level : *levels) {
    if (!level.is_object()) throw bad("levels");
    grid.downsamples.push_back(count(level, "downsample"));
  }
  return grid;
}

}  // namespace iac::wsi
