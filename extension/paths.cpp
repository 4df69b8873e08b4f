#include "paths.h"

#include <iac/error.h>
#include <iac/source.h>
#include <iac/utf8.h>

#include <cstdlib>
#include <filesystem>

#include "settings.h"

namespace iac::duckdb {
namespace {

namespace fs = std::filesystem;

// Longer paths than any system opens; taking them apart takes time that grows with the square.
constexpr size_t max_path_bytes = 4096;

std::string home_directory(duckdb_client_context context) {
  const std::string setting = text_setting(context, "home_directory");
  if (!setting.empty()) return setting;
  const char* home = std::getenv("HOME");
  return home != nullptr ? home : "";
}

// "bob:hun" of "http://bob:hun/ter@host": a password that was not escaped, where a port should be.
bool is_cut_password(const std::string& url, size_t host) {
  const size_t end = url.find_first_of("/?#", host);
  const size_t colon = url.rfind(':', end);
  if (end == url.npos || colon == url.npos || colon < host || url[end - 1] == ']') return false;
  return url.substr(colon + 1, end - colon - 1).find_first_not_of("0123456789") != url.npos &&
         url.find('@', end) != url.npos;
}

// Throws Error that does not repeat what may be secret.
void check_url(const std::string& url) {
  const size_t host = url.find("://") + 3;
  const size_t host_end = url.find('/', host);
  const size_t user_end = url.substr(0, host_end).rfind('@');
  const size_t query = url.find_first_of("?#");
  std::string plain = url.substr(0, query);
  const auto refuse = [&](const std::string& reason) {
    throw Error(Error::Kind::argument, reason).in(plain);
  };
  if (url.find("::") != url.npos) {
    plain = "a chained URL";
    refuse("references cannot name it; register the file system that it goes through with DuckDB");
  }
  const bool cut = is_cut_password(url, host);
  if (cut || user_end != url.npos) {
    plain = cut || query < user_end ? "a URL" : plain.erase(host, user_end + 1 - host);
    refuse(
        "the URL holds credentials, which references would carry on; give them to the file system, "
        "or to CREATE SECRET");
  }
  if (query != url.npos) {
    refuse(std::string("the URL has a ") +
           (url[query] == '?' ? "query (behind '?')" : "fragment (behind '#')") +
           ", which may hold credentials that references would carry on; give them to the file "
           "system, or to CREATE SECRET");
  }
}

}  // namespace

bool is_url(const std::string& path) {
  const size_t scheme = path.find("://");
  return scheme != path.npos && scheme > 0 && path.find('/') > scheme;
}

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
  if (path.size() > max_path_bytes) {
    throw Error(Error::Kind::argument, "the path of a pack has " + std::to_string(path.size()) +
                                           " bytes, at most " + std::to_string(max_path_bytes) +
                                           " can be opened");
  }
  if (is_url(path)) {
    check_url(path);
    return path;
  }
  std::string plain = normal_path(fs::absolute(expand_home(context, path)));
  require_text(plain);
  return plain;
}

void require_text(const std::string& path) {
  if (is_utf8(as_bytes(path.data(), path.size()))) return;
  throw Error(Error::Kind::argument,
              "the path is not UTF-8 text, which references must be; rename it")
      .in(path);
}

}  // namespace iac::duckdb
