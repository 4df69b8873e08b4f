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

// The pack now at an absolute path. DuckDB opens the file first, so that its settings for access
// to files hold; packs stay open between queries, which makes no difference to that. Throws Error.
std::shared_ptr<const Pack> open_pack(duckdb_client_context context, const std::string& path);

// The same, read from the file again.
std::shared_ptr<const Pack> open_pack_anew(duckdb_client_context context, const std::string& path);

}  // namespace iac::duckdb
