#include "files.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>

namespace iac::duckdb {
namespace {

namespace fs = std::filesystem;

Handle<duckdb_error_data> try_open(duckdb_file_system files, const std::string& path,
                                   Handle<duckdb_file_handle>& file) {
  const Handle<duckdb_file_open_options> options(duckdb_create_file_open_options());
  duckdb_file_open_options_set_flag(options.get(), DUCKDB_FILE_FLAG_READ, true);
  if (duckdb_file_system_open(files, path.c_str(), options.get(), file.out()) == DuckDBSuccess) {
    return {};
  }
  return Handle<duckdb_error_data>(duckdb_file_system_error_data(files));
}

// Opens a file of this machine and closes it at once: no handle may outlive the connection. The
// error, if there is one.
Handle<duckdb_error_data> try_open(duckdb_client_context context, const std::string& path) {
  std::error_code ignored;
  if (fs::is_fifo(path, ignored)) {  // opening it would wait for a writer
    throw Error(Error::Kind::system, "cannot open: it is a pipe").in(path);
  }
  const Handle<duckdb_file_system> files(duckdb_client_context_get_file_system(context));
  Handle<duckdb_file_handle> file;
  return try_open(files.get(), path, file);
}

bool is_permission(const Handle<duckdb_error_data>& error) {
  return duckdb_error_data_error_type(error.get()) == DUCKDB_ERROR_PERMISSION;
}

Error refused(const Handle<duckdb_error_data>& error) {
  return {Error::Kind::system, message_of(error.get()), is_permission(error) ? EPERM : 0};
}

}  // namespace

std::string message_of(duckdb_error_data error) {
  const char* const text = duckdb_error_data_message(error);
  std::string message = text != nullptr ? text : "";
  message.erase(std::min(message.find("\n\nAt:\n"), message.size()));
  constexpr std::string_view traceback = "Traceback (most recent call last):\n";
  const size_t begin = message.find(traceback);
  if (begin == message.npos) return message;
  size_t end = begin + traceback.size();  // its lines are indented
  while (message.compare(end, 1, " ") == 0)
    end = std::min(message.find('\n', end), message.size() - 1) + 1;
  return message.erase(begin, end - begin);
}

Handle<duckdb_file_handle> open_file(duckdb_file_system files, const std::string& path) {
  Handle<duckdb_file_handle> file;
  if (const auto error = try_open(files, path, file)) throw refused(error);
  return file;
}

void check_readable(duckdb_client_context context, const std::string& path) {
  if (const auto error = try_open(context, path)) throw refused(error);
}

void check_allowed(duckdb_client_context context, const std::string& path) {
  const auto error = try_open(context, path);
  if (error && is_permission(error)) throw refused(error);
}

bool is_forbidden(const Error& error) {
  return error.kind() == Error::Kind::system && error.code() == EPERM;
}

void check_folder(duckdb_client_context context, const std::string& folder) {
  check_allowed(context, fs::path(folder) / "*");
}

}  // namespace iac::duckdb
