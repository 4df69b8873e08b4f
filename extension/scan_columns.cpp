#include "scan_columns.h"

#include <iac/error.h>

#include <algorithm>
#include <array>
#include <map>

#include "record.h"
#include "widening.h"

namespace iac::duckdb {
namespace {

// The columns of one name: of each shape that has it, its place there.
struct Group {
  std::string name;
  std::vector<std::pair<Shape*, size_t>> members;

  const Shape& shape(size_t i) const { return *members[i].first; }
  PackColumn& column(size_t i) const { return members[i].first->columns[members[i].second]; }
};

std::vector<Group> group_by_name(const std::vector<std::unique_ptr<Shape>>& shapes) {
  std::vector<Group> groups;
  std::map<std::string, size_t> known;
  for (const auto source : {PackColumn::Source::index, PackColumn::Source::slides,
                            PackColumn::Source::patient_id, PackColumn::Source::place}) {
    for (const auto& shape : shapes) {
      for (size_t i = 0; i < shape->columns.size(); ++i) {
        const PackColumn& column = shape->columns[i];
        if (column.source != source) continue;
        const auto [at, is_new] = known.emplace(lower_case(column.name), groups.size());
        if (is_new) groups.push_back({column.name, {}});
        groups[at->second].members.emplace_back(shape.get(), i);
      }
    }
  }
  return groups;
}

// Says which two of the types do not go together.
void explain_conflict(const Group& group, const std::vector<std::string>& names,
                      const std::vector<duckdb_type>& types, const std::vector<PackFile>& files,
                      ScanColumn& column) {
  for (size_t i = 1; i < names.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (names[k] == names[i] || common_type(std::array{types[k], types[i]})) continue;
      column.problem = "it has type " + names[i] + " here and " + names[k] + " in " +
                       files[group.shape(k).first_pack].path +
                       ", which do not go together; scan these packs apart and cast one of them";
      column.problem_pack = group.shape(i).first_pack;
      return;
    }
  }
}

// Makes all members of one type; those that hold nothing but NULLs are left out.
ScanColumn join_types(Group& group, const std::vector<PackFile>& files) {
  ScanColumn joined{.source = ScanColumn::Source::table,
                    .name = group.name,
                    .own_type = logical_type(DUCKDB_TYPE_VARCHAR)};
  for (size_t i = 0; i < group.members.size(); ++i) {
    if (group.column(i).problem.empty()) continue;
    joined.problem = group.column(i).problem;
    joined.problem_pack = group.shape(i).first_pack;
    return joined;
  }
  const auto type_of = [&](const auto& member) {
    return member.first->columns[member.second].type.logical.get();
  };
  const auto is_null = [&](const auto& member) {
    return duckdb_get_type_id(type_of(member)) == DUCKDB_TYPE_SQLNULL;
  };
  if (!std::all_of(group.members.begin(), group.members.end(), is_null)) {
    std::erase_if(group.members, is_null);
  }
  std::vector<std::string> names;
  std::vector<duckdb_type> types;
  for (const auto& member : group.members) {
    names.push_back(type_name(type_of(member)));
    types.push_back(duckdb_get_type_id(type_of(member)));
  }
  const bool same = std::all_of(names.begin(), names.end(),
                                [&](const std::string& name) { return name == names[0]; });
  const auto common = same ? std::nullopt : common_type(types);
  if (!same && !common) {
    explain_conflict(group, names, types, files, joined);
    return joined;
  }
  joined.sample = &group.column(0);
  for (size_t i = 0; i < group.members.size(); ++i) {
    ValueType& type = group.column(i).type;
    if (common && types[i] != *common) type = widened(std::move(type), *common);
  }
  return joined;
}

void add_option_columns(std::vector<ScanColumn>& columns, const ScanOptions& options,
                        const Partitions& partitions) {
  const auto find = [&](const std::string& name) {
    return std::find_if(columns.begin(), columns.end(), [&](const ScanColumn& column) {
      return lower_case(column.name) == lower_case(name);
    });
  };
  const auto taken = [&](const std::string& option, const std::string& name) {
    return Error(Error::Kind::argument, std::string(options.function) + ": " + option +
                                            " adds the column '" + name +
                                            "', but there is one of that name");
  };
  if (!options.filename.empty()) {
    if (find(options.filename) != columns.end()) throw taken("filename", options.filename);
    columns.push_back({.source = ScanColumn::Source::filename,
                       .name = options.filename,
                       .own_type = logical_type(DUCKDB_TYPE_VARCHAR)});
  }
  for (size_t i = 0; i < partitions.keys.size(); ++i) {
    ScanColumn column{.source = ScanColumn::Source::partition,
                      .name = partitions.keys[i],
                      .own_type = logical_type(partitions.types[i]),
                      .partition = i};
    const auto at = find(column.name);
    if (at == columns.end()) {
      columns.push_back(std::move(column));
    } else if (at->source == ScanColumn::Source::table) {
      *at = std::move(column);  // the folder has the last word
    } else {
      throw taken("hive_partitioning", column.name);
    }
  }
}

}  // namespace

std::vector<ScanColumn> join_columns(std::vector<std::unique_ptr<Shape>>& shapes,
                                     const std::vector<PackFile>& files, const ScanOptions& options,
                                     const Partitions& partitions) {
  std::vector<Group> groups = group_by_name(shapes);
  std::vector<ScanColumn> columns;
  for (Group& group : groups) columns.push_back(join_types(group, files));
  if (options.table == PackColumn::Source::index) {
    columns.push_back(
        {.source = ScanColumn::Source::record, .name = record_name, .own_type = record_type()});
  }
  add_option_columns(columns, options, partitions);

  for (const auto& shape : shapes) shape->sources.resize(columns.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const auto& [shape, position] : groups[i].members) shape->sources[i] = position;
  }
  return columns;
}

}  // namespace iac::duckdb
