// Opening the packs that a query names, under the rules of its connection.
#pragma once

#include <iac/pack.h>

#include <memory>
#include <string>

#include "handles.h"

namespace iac::duckdb {

// What a pack is called in references: the absolute path, with symbolic links as they are. Throws
// Error for what is no local path.
std::string pack_path(duckdb_client_context context, const std::string& path);

bool is_url(const std::string& path);

// The path with ~ for the home directory written out.
std::string expand_home(duckdb_client_context context, const std::string& path);

// Without `.` and `a/..`, unless that is another file because `a` is a symbolic link.
std::string normal_path(const std::string& path);

// Throws Error when the settings of DuckDB forbid to open this path, where there need be no file,
// or to look into this folder. A pattern is taken for a path, as DuckDB's own readers do it.
void check_allowed(duckdb_client_context context, const std::string& path);
void check_folder(duckdb_client_context context, const std::string& folder);

// The pack now at an absolute path. DuckDB opens the file first, so that its settings for access
// to files hold; packs stay open between queries, which makes no difference to that. `keep` false:
// one of so many that it would only push out others. Throws Error.
std::shared_ptr<const Pack> open_pack(duckdb_client_context context, const std::string& path,
                                      bool keep = true);

// The same, read from the file again.
std::shared_ptr<const Pack> open_pack_anew(duckdb_client_context context, const std::string& path);

}  // namespace iac::duckdb
