#include "packs.h"

#include <iac/error.h>
#include <iac/per_process.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "settings.h"

namespace iac::duckdb {
namespace {

namespace fs = std::filesystem;

// Longer paths than any system opens; taking them apart takes time that grows with the square.
constexpr size_t max_path_bytes = 4096;

// Bytes of the tables of packs kept open, which stay in memory once they were read.
constexpr uint64_t max_table_bytes = uint64_t{1} << 30;

// Opens a file as DuckDB does and closes it at once: no handle may outlive the connection. The
// error, if there is one.
Handle<duckdb_error_data> try_open(duckdb_client_context context, const std::string& path) {
  std::error_code ignored;
  if (fs::is_fifo(path, ignored)) {  // opening it would wait for a writer
    throw Error(Error::Kind::system, "cannot open: it is a pipe").in(path);
  }
  const Handle<duckdb_file_system> files(duckdb_client_context_get_file_system(context));
  const Handle<duckdb_file_open_options> options(duckdb_create_file_open_options());
  duckdb_file_open_options_set_flag(options.get(), DUCKDB_FILE_FLAG_READ, true);
  Handle<duckdb_file_handle> file;
  if (duckdb_file_system_open(files.get(), path.c_str(), options.get(), file.out()) ==
      DuckDBSuccess) {
    return {};
  }
  return Handle<duckdb_error_data>(duckdb_file_system_error_data(files.get()));
}

Error refused(const Handle<duckdb_error_data>& error) {
  return {Error::Kind::system, duckdb_error_data_message(error.get())};
}

void check_access(duckdb_client_context context, const std::string& path) {
  if (const auto error = try_open(context, path)) throw refused(error);
}

class PackCache {
 public:
  // Keeps up to `max_packs` open, this one among them if `keep`.
  std::shared_ptr<const Pack> open(const std::string& path, bool keep, size_t max_packs) {
    const std::string identity = local_identity(path);
    {
      const std::lock_guard lock(mutex_);
      const auto found = packs_.find(path);
      if (found != packs_.end() && found->second.pack->source().identity() == identity) {
        found->second.last_use = ++clock_;
        const auto pack = found->second.pack;
        evict(max_packs);
        return pack;
      }
    }
    auto pack = Pack::open(path);
    if (!keep) return pack;
    const std::lock_guard lock(mutex_);
    packs_[path] = {pack, ++clock_};
    evict(max_packs);
    return pack;
  }

 private:
  struct Entry {
    std::shared_ptr<const Pack> pack;
    uint64_t last_use = 0;
  };

  static uint64_t table_bytes(const Pack& pack) {
    return pack.header().slide_table.length + pack.header().index_table.length;
  }

  // Drops those not used for longest; how large the last one used is does not count.
  void evict(size_t max_packs) {
    uint64_t bytes = 0;
    for (const auto& [path, entry] : packs_) bytes += table_bytes(*entry.pack);
    while (packs_.size() > max_packs || (packs_.size() > 1 && bytes > max_table_bytes)) {
      const auto oldest = std::min_element(
          packs_.begin(), packs_.end(),
          [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
      bytes -= table_bytes(*oldest->second.pack);
      packs_.erase(oldest);
    }
  }

  std::mutex mutex_;
  std::map<std::string, Entry> packs_;
  uint64_t clock_ = 0;
};

// Leaked on purpose: queries may still run while the process ends.
PackCache& cache() {
  static auto* const instance = new PerProcess<PackCache>;
  return **instance;
}

std::string home_directory(duckdb_client_context context) {
  const std::string setting = text_setting(context, "home_directory");
  if (!setting.empty()) return setting;
  const char* home = std::getenv("HOME");
  return home != nullptr ? home : "";
}

}  // namespace

bool is_url(const std::string& path) { return path.find("://") != std::string::npos; }

std::string expand_home(duckdb_client_context context, const std::string& path) {
  if (!path.starts_with("~/")) return path;
  return fs::path(home_directory(context)) / path.substr(2);
}

std::string normal_path(const std::string& path) {
  const fs::path plain = fs::path(path).lexically_normal();
  const bool same = plain == path || local_identity(plain) == local_identity(path);
  return same ? plain.string() : path;
}

std::string pack_path(duckdb_client_context context, const std::string& path) {
  if (path.empty()) throw Error(Error::Kind::argument, "the path of a pack is empty");
  if (path.find('\0') != std::string::npos) {
    throw Error(Error::Kind::argument, "the path of a pack contains a zero byte");
  }
  if (is_url(path)) {
    throw Error(Error::Kind::argument, "only packs in local files can be opened").in(path);
  }
  if (path.size() > max_path_bytes) {
    throw Error(Error::Kind::argument, "the path of a pack has " + std::to_string(path.size()) +
                                           " bytes, at most " + std::to_string(max_path_bytes) +
                                           " can be opened");
  }
  return normal_path(fs::absolute(expand_home(context, path)));
}

void check_allowed(duckdb_client_context context, const std::string& path) {
  const auto error = try_open(context, path);
  if (error && duckdb_error_data_error_type(error.get()) == DUCKDB_ERROR_PERMISSION) {
    throw refused(error);
  }
}

void check_folder(duckdb_client_context context, const std::string& folder) {
  check_allowed(context, fs::path(folder) / "*");
}

std::shared_ptr<const Pack> open_pack(duckdb_client_context context, const std::string& path,
                                      bool keep) {
  check_access(context, path);
  return cache().open(path, keep, cache_packs(context));
}

std::shared_ptr<const Pack> open_pack_anew(duckdb_client_context context, const std::string& path) {
  check_access(context, path);
  return Pack::open(path);
}

}  // namespace iac::duckdb
