#include "pack_files.h"

#include <iac/error.h>

#include <filesystem>

#include "files.h"
#include "glob.h"
#include "paths.h"
#include "strings.h"

namespace iac::duckdb {
namespace {

namespace fs = std::filesystem;

// A VARCHAR in full: as a C string it would end at a zero byte.
std::string full_text(duckdb_value value) {
  const LogicalType type = logical_type(DUCKDB_TYPE_VARCHAR);
  const Handle<duckdb_vector> vector(duckdb_create_vector(type.get(), 1));
  duckdb_vector_reference_value(vector.get(), value);
  duckdb_string_t& text = *strings_of(vector.get());
  return {duckdb_string_t_data(&text), duckdb_string_t_length(text)};
}

// The texts of a VARCHAR or a VARCHAR[].
std::vector<std::string> texts_of(duckdb_value argument, const std::string& function) {
  const auto fail = [&](const std::string& problem) {
    return Error(Error::Kind::argument, function + ": " + problem);
  };
  const auto text = [&](duckdb_value value) {
    if (duckdb_get_type_id(duckdb_get_value_type(value)) != DUCKDB_TYPE_VARCHAR) {
      throw fail("expected a path or a list of paths, VARCHAR or VARCHAR[]");
    }
    return full_text(value);
  };
  if (duckdb_is_null_value(argument)) throw fail("the path is NULL");
  if (duckdb_get_type_id(duckdb_get_value_type(argument)) != DUCKDB_TYPE_LIST) {
    return {text(argument)};
  }
  std::vector<std::string> texts;
  for (idx_t i = 0; i < duckdb_get_list_size(argument); ++i) {
    const Value item(duckdb_get_list_child(argument, i));
    if (duckdb_is_null_value(item.get())) throw fail("a path in the list is NULL");
    texts.push_back(text(item.get()));
  }
  if (texts.empty()) throw fail("the list of paths is empty");
  return texts;
}

void add_matches(duckdb_client_context context, const std::string& pattern,
                 std::vector<PackFile>& files) {
  const size_t before = files.size();
  std::string folder, absolute_folder;  // of the match before
  for (std::string& match :
       expand_glob(pattern, [&](const std::string& name) { check_folder(context, name); })) {
    const size_t name = match.rfind('/') + 1;  // 0: there is no folder
    if (match.compare(0, name, folder) != 0 || absolute_folder.empty()) {
      folder = match.substr(0, name);
      absolute_folder = pack_path(context, fs::absolute(folder + "./"));  // ~ is a name here
    }
    require_text(match);
    files.push_back({absolute_folder + match.substr(name), std::move(match)});
  }
  if (files.size() == before) {
    throw Error(Error::Kind::not_found, "no file matches this pattern").in(pattern);
  }
}

}  // namespace

std::vector<PackFile> pack_files(duckdb_client_context context, duckdb_value argument,
                                 const std::string& function) {
  std::vector<PackFile> files;
  for (const std::string& text : texts_of(argument, function)) {
    std::string path = pack_path(context, text);
    if (is_url(text)) {
      if (is_glob(text)) {
        throw Error(Error::Kind::argument,
                    "patterns in URLs are not expanded here; list the files with DuckDB: SET "
                    "VARIABLE files = (SELECT list(file) FROM glob('...')); FROM " +
                        function + "(getvariable('files'))")
            .in(text);
      }
      files.push_back({path, path});
      continue;
    }
    const std::string named = expand_home(context, text);
    if (is_glob(named)) {
      check_allowed(context, named);
      std::error_code ignored;
      if (!fs::exists(fs::symlink_status(named, ignored))) {
        add_matches(context, named, files);
        continue;
      }
    }
    files.push_back({std::move(path), normal_path(named)});
  }
  return files;
}

}  // namespace iac::duckdb
