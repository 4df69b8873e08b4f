// The packs that a query names: by a path, a pattern, or a list of both.
#pragma once

#include <string>
#include <vector>

#include "handles.h"

namespace iac::duckdb {

struct PackFile {
  std::string path;      // absolute, what the pack is called in references and errors
  std::string filename;  // as the query names it
};

// The packs in the order in which they are named, those of a pattern sorted. `argument` is what
// `function` got for its path. Throws Error when there are none.
std::vector<PackFile> pack_files(duckdb_client_context context, duckdb_value argument,
                                 const std::string& function);

}  // namespace iac::duckdb
