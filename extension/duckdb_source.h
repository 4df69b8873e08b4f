// Files that only DuckDB opens: URLs of its own file systems and of those that the user registered.
#pragma once

#include <iac/remote.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "handles.h"

namespace iac::duckdb {

// Lives no longer than the query that opened it: a handle of DuckDB must not.
class DuckdbSource final : public RemoteSource {
 public:
  // Opens the file under the rules of the connection, and reads its head. Throws Error.
  static std::shared_ptr<DuckdbSource> open(duckdb_client_context context, const std::string& url);

 protected:
  uint64_t fetch(uint64_t offset, MutableBytes out) const override;

 private:
  using File = Handle<duckdb_file_handle>;

  DuckdbSource(std::string url, Handle<duckdb_file_system> files, File first, uint64_t size,
               bool alone);

  File take() const;
  void give_back(File file) const;

  std::string url_;
  bool alone_;  // one call at a time, of all sources that are so
  Handle<duckdb_file_system> files_;
  // A handle has one position, so that each is of one thread at a time. There are as many as there
  // were reads at once.
  mutable std::mutex mutex_;
  mutable std::vector<File> idle_;
};

}  // namespace iac::duckdb
