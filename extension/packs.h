// Opening the packs that a query names, under the rules of its connection.
#pragma once

#include <iac/pack.h>

#include <memory>
#include <string>

#include "handles.h"

namespace iac::duckdb {

// What may stay in memory between queries. Of DuckDB's memory_limit the tables of packs take a
// quarter when no query runs, and another quarter for those that its threads read from. Asking
// DuckDB costs more than opening a pack that is open, so ask once a query.
struct CacheLimits {
  explicit CacheLimits(duckdb_client_context context);

  size_t packs;
  uint64_t bytes, bytes_a_table;
};

// The pack now at an absolute path or a URL. DuckDB opens the file first, so that its settings for
// access to files hold. Local packs stay open between queries, which makes no difference to that;
// those of URLs must not outlive the query. `keep` false: one of so many that it would only push
// out others. Throws Error.
std::shared_ptr<const Pack> open_pack(duckdb_client_context context, const std::string& path,
                                      const CacheLimits& limits, bool keep = true);

// The same, read from the file again.
std::shared_ptr<const Pack> open_pack_anew(duckdb_client_context context, const std::string& path);

}  // namespace iac::duckdb
