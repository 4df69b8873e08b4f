// What packs are called.
#pragma once

#include <string>

#include "handles.h"

namespace iac::duckdb {

// What a pack is called in references: the absolute path, with symbolic links as they are, or the
// URL. Throws Error for what is neither, and for a URL that holds credentials, or may: references
// go where others read them.
std::string pack_path(duckdb_client_context context, const std::string& path);

// Throws Error for a path, as files of this machine may have them, that no VARCHAR can hold.
void require_text(const std::string& path);

bool is_url(const std::string& path);

// The path with ~ for the home directory written out.
std::string expand_home(duckdb_client_context context, const std::string& path);

// Without `.` and `a/..`, unless that is another file because `a` is a symbolic link.
std::string normal_path(const std::string& path);

}  // namespace iac::duckdb
