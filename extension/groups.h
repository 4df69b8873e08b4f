// The references of a vector, sorted by the pack that they go to.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "record.h"

namespace iac::duckdb {

// The references of a vector that go to one pack.
struct Group {
  std::string_view path;
  std::vector<idx_t> slots;
  std::vector<int64_t> rows;
  std::vector<std::optional<int64_t>> stamps;

  bool all_stamped() const;
};

std::vector<Group> group_by_pack(const std::vector<std::optional<Reference>>& references);

// A reference with a stamp was made by a scan: that its row is missing, or has another stamp, says
// that the pack is not the one it was. Throws Error.
void check_stamps(const Pack& pack, const Group& group);

}  // namespace iac::duckdb
