#include "glob.h"

#include <fnmatch.h>
#include <iac/error.h>
#include <locale.h>

#include <algorithm>
#include <filesystem>

namespace iac::duckdb {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view any_folders = "**";

// While it lives, fnmatch takes names for UTF-8, whatever locale the program chose.
class Utf8Locale {
 public:
  Utf8Locale() : before_(uselocale(utf8())) {}
  ~Utf8Locale() { uselocale(before_); }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  static locale_t utf8() {
    static const locale_t locale = newlocale(LC_ALL_MASK, "C.UTF-8", nullptr);
    return locale;  // the program's own where there is none such
  }

  locale_t before_;
};

std::string join(const std::string& folder, const std::string& name) {
  return folder.empty() || folder.ends_with('/') ? folder + name : folder + "/" + name;
}

struct Entry {
  std::string name;
  bool is_folder;
  bool is_link;
};

// The regular files and folders in a folder, by name.
std::vector<Entry> list(const std::string& folder) {
  std::error_code error, ignored;
  std::vector<Entry> entries;
  const fs::directory_iterator end;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, error); !error && at != end;
       at.increment(error)) {
    const bool is_folder = at->is_directory(ignored);
    if (!is_folder && !at->is_regular_file(ignored)) continue;
    entries.push_back({at->path().filename().string(), is_folder, at->is_symlink(ignored)});
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw system_error(error.value(), "cannot list the folder").in(folder);
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

class Search {
 public:
  Search(std::vector<std::string> parts, const std::function<void(const std::string&)>& check)
      : parts_(std::move(parts)), check_(check) {}

  std::vector<std::string> run(std::string folder) && {
    size_t at = 0;
    while (!is_last(at) && !is_glob(parts_[at])) folder = join(folder, parts_[at++]);
    std::error_code ignored;
    if (folder.empty() || fs::is_directory(folder, ignored)) enter(folder, at);
    return std::move(found_);
  }

 private:
  // Finds what matches the parts from `at` on in a folder.
  void enter(const std::string& folder, size_t at) {
    check_(folder);
    if (parts_[at] == any_folders) return enter_all(folder, at);
    if (!is_glob(parts_[at])) return enter_named(folder, at);
    for (const Entry& entry : list(folder)) {
      if (entry.is_folder == is_last(at)) continue;
      if (fnmatch(parts_[at].c_str(), entry.name.c_str(), FNM_NOESCAPE) != 0) continue;
      take(join(folder, entry.name), at);
    }
  }

  void enter_named(const std::string& folder, size_t at) {
    const std::string path = join(folder, parts_[at]);
    std::error_code ignored;
    if (is_last(at) ? fs::is_regular_file(path, ignored) : fs::is_directory(path, ignored)) {
      take(path, at);
    }
  }

  void enter_all(const std::string& folder, size_t at) {
    const std::vector<Entry> entries = list(folder);
    if (is_last(at)) {
      for (const Entry& entry : entries) {
        if (!entry.is_folder && !entry.is_link) take(join(folder, entry.name), at);
      }
    } else {
      enter(folder, at + 1);
    }
    for (const Entry& entry : entries) {
      if (!entry.is_folder || entry.is_link) continue;
      const std::string inner = join(folder, entry.name);
      check_(inner);
      enter_all(inner, at);
    }
  }

  void take(const std::string& path, size_t at) {
    if (is_last(at)) {
      found_.push_back(path);
    } else {
      enter(path, at + 1);
    }
  }

  bool is_last(size_t at) const { return at + 1 == parts_.size(); }

  std::vector<std::string> parts_;
  const std::function<void(const std::string&)>& check_;
  std::vector<std::string> found_;
};

}  // namespace

bool is_glob(std::string_view path) { return path.find_first_of("*?[") != path.npos; }

std::vector<std::string> expand_glob(const std::string& pattern,
                                     const std::function<void(const std::string&)>& check) {
  const fs::path path = fs::path(pattern).lexically_normal();
  std::vector<std::string> parts;
  for (const fs::path& part : path.relative_path()) parts.push_back(part.string());
  if (std::count(parts.begin(), parts.end(), any_folders) > 1) {
    throw Error(Error::Kind::argument, "a pattern can have only one **").in(pattern);
  }
  if (parts.empty() || parts.back().empty()) return {};  // ends in a slash: no files
  const Utf8Locale locale;
  return Search(std::move(parts), check).run(path.root_path().string());
}

}  // namespace iac::duckdb
