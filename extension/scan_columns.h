// The columns of a scan over packs that need not have the same ones: by name, whatever the case;
// those of index tables first, then those of slide tables, the reference of a record, and what the
// options add.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "columns.h"
#include "partitions.h"

namespace iac::duckdb {

struct ScanColumn {
  enum class Source { table, record, filename, partition };
  Source source;
  std::string name;
  const PackColumn* sample = nullptr;  // of a table: what one of the packs has, in the scan's type
  LogicalType own_type;                // without a sample
  std::string problem;                 // why it cannot be read,
  size_t problem_pack = 0;             // and in which pack
  size_t partition = 0;

  duckdb_logical_type type() const { return (sample ? sample->type.logical : own_type).get(); }
};

// What packs of equal columns have in common.
struct Shape {
  std::string signature;
  size_t first_pack = 0;
  std::vector<PackColumn> columns;
  // For each column of the scan, the one of these packs.
  std::vector<std::optional<size_t>> sources;
};

struct ScanOptions {
  const char* function = nullptr;                        // of SQL, for errors
  PackColumn::Source table = PackColumn::Source::index;  // whose rows are scanned
  bool layout = false;
  std::string filename;  // of the column; empty: none
  bool partitions = false;
};

// Finds the columns of the scan and makes those of the shapes fit. Throws Error for options that
// name a column which is there already.
std::vector<ScanColumn> join_columns(std::vector<std::unique_ptr<Shape>>& shapes,
                                     const std::vector<PackFile>& files, const ScanOptions& options,
                                     const Partitions& partitions);

}  // namespace iac::duckdb
