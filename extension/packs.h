// Opening the packs that a query names, under the rules of its connection.
#pragma once

#include <iac/pack.h>

#include <atomic>
#include <memory>
#include <string>

#include "handles.h"

namespace iac::duckdb {

// What may stay in memory between queries. Of DuckDB's memory_limit the tables of packs take a
// quarter when no query runs, and another quarter for those that its threads read from.
struct CacheLimits {
  explicit CacheLimits(duckdb_client_context context);

  size_t packs;
  uint64_t bytes, bytes_a_table;
};

// Opens packs while one query is planned or runs. Asking DuckDB for settings costs more than
// opening a pack that is open, so make one for all of them. Threads may share it.
class PackOpener {
 public:
  explicit PackOpener(duckdb_client_context context);

  // How many packs stay open between queries.
  size_t kept() const { return limits_.packs; }

  // The pack now at an absolute path or a URL. DuckDB's settings for access to files hold: it opens
  // the file first. Local packs stay open between queries, which makes no difference to that; those
  // of URLs must not outlive the query. `keep` false: one of so many that it would only push out
  // others. Throws Error.
  std::shared_ptr<const Pack> open(const std::string& path, bool keep = true) const;

 private:
  void check_access(const std::string& path) const;

  duckdb_client_context context_;
  CacheLimits limits_;
  bool has_path_rules_;                      // of which files may be opened
  mutable std::atomic<bool> allows_{false};  // files of this machine, when there are none
};

// The same, read from the file again.
std::shared_ptr<const Pack> open_pack_anew(duckdb_client_context context, const std::string& path);

}  // namespace iac::duckdb
