#include "groups.h"

#include <iac/error.h>

#include <algorithm>
#include <map>

namespace iac::duckdb {

bool Group::all_stamped() const {
  return std::all_of(stamps.begin(), stamps.end(),
                     [](const auto& stamp) { return stamp.has_value(); });
}

std::vector<Group> group_by_pack(const std::vector<std::optional<Reference>>& references) {
  std::vector<Group> groups;
  std::map<std::string_view, size_t> known;
  size_t current = 0;
  for (size_t slot = 0; slot < references.size(); ++slot) {
    if (!references[slot]) continue;
    const Reference& reference = *references[slot];
    if (groups.empty() || groups[current].path != reference.pack) {
      current = known.emplace(reference.pack, groups.size()).first->second;
      if (current == groups.size()) groups.push_back({reference.pack, {}, {}, {}});
    }
    groups[current].slots.push_back(slot);
    groups[current].rows.push_back(reference.row);
    groups[current].stamps.push_back(reference.stamp);
  }
  return groups;
}

void check_stamps(const Pack& pack, const Group& group) {
  std::vector<int64_t> rows;
  std::vector<int64_t> stamps;
  const auto stale = [&](int64_t row) {
    return Error(Error::Kind::stale, "the pack has changed since the reference was made")
        .at(row)
        .in(pack.path());
  };
  for (size_t i = 0; i < group.rows.size(); ++i) {
    if (!group.stamps[i]) continue;
    if (group.rows[i] < 0 || group.rows[i] >= pack.num_records()) throw stale(group.rows[i]);
    rows.push_back(group.rows[i]);
    stamps.push_back(*group.stamps[i]);
  }
  if (rows.empty()) return;
  const std::vector<uint32_t> found = pack.stamps(rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (found[i] != stamps[i]) throw stale(rows[i]);
  }
}

}  // namespace iac::duckdb
