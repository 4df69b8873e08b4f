// What the planner fixes of a scan: which packs, and which columns they have together.
#pragma once

#include <iac/pack.h>

#include <memory>
#include <string>
#include <vector>

#include "pack_files.h"
#include "packs.h"
#include "partitions.h"
#include "scan_columns.h"

namespace iac::duckdb {

struct ScanPlan {
  struct PlannedPack {
    const Shape* shape = nullptr;
    int64_t rows = 0;
    std::string identity;  // of its source
  };

  ClientContext context;
  ScanOptions options;
  std::vector<PackFile> files;
  std::vector<PlannedPack> packs;  // of each file
  std::vector<std::unique_ptr<Shape>> shapes;
  Partitions partitions;
  std::vector<ScanColumn> columns;

  // The table of a pack whose rows are scanned.
  const Table& rows_of(const Pack& pack) const { return table_of(pack, options.table); }

  // Opens one of the packs. It may be another one than was planned for: a prepared statement runs
  // long after it was planned. Throws Error when its columns are not those planned for.
  std::shared_ptr<const Pack> open(size_t pack, const PackOpener& opener) const;
};

// Opens every pack for a moment. Throws Error naming the first that is damaged.
std::unique_ptr<ScanPlan> plan_scan(duckdb_bind_info info, const char* function,
                                    PackColumn::Source table);

}  // namespace iac::duckdb
