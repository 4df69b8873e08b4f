// Files by pattern, as DuckDB's own glob finds them: * ? and [...] within a name, ** for any number
// of folders. Hidden files are found too; ** does not follow symbolic links.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace iac::duckdb {

bool is_glob(std::string_view path);

// The regular files that match, sorted folder by folder, files before the folders beside them.
// `check` is called for each folder before anything in it is looked at; what it throws ends the
// search. Throws Error for a folder that cannot be listed.
std::vector<std::string> expand_glob(const std::string& pattern,
                                     const std::function<void(const std::string&)>& check);

}  // namespace iac::duckdb
