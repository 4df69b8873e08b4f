// Folders called key=value in the paths of packs, as columns.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "handles.h"
#include "pack_files.h"

namespace iac::duckdb {

struct Partitions {
  std::vector<std::string> keys;   // sorted
  std::vector<duckdb_type> types;  // VARCHAR, BIGINT or DATE of each key
  // Of each pack, as they stand in its path.
  std::vector<std::vector<std::optional<std::string>>> values;
};

// The types asked for, of keys in lower case.
using PartitionTypes = std::map<std::string, duckdb_type>;

// From {'year': BIGINT, 'site': VARCHAR}, whose types come as texts. Throws Error for anything
// else.
PartitionTypes read_partition_types(duckdb_value types);

// Throws Error when not all files have the same keys, or not the types asked for.
Partitions find_partitions(const std::vector<PackFile>& files, const PartitionTypes& asked);

// Writes `count` times the value of a partition.
void fill_partition(const std::optional<std::string>& text, duckdb_type type, size_t count,
                    duckdb_vector vector);

}  // namespace iac::duckdb
