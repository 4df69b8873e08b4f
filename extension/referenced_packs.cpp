#include "referenced_packs.h"

#include <iac/error.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "packs.h"
#include "paths.h"
#include "settings.h"

namespace iac::duckdb {

namespace fs = std::filesystem;

// Folders of a reference's path that are looked for; a path made up to be endless costs no more.
static constexpr ptrdiff_t max_folders = 32;

// Nothing when there is none, or none that DuckDB may open: which of them it is stays untold.
static std::shared_ptr<const Pack> try_open(const PackOpener& opener, const fs::path& path) {
  try {
    return opener.open(path);
  } catch (const Error& error) {
    const bool no_file =
        error.kind() == Error::Kind::system || error.kind() == Error::Kind::not_found;
    if (no_file) return nullptr;
    throw;
  }
}

ReferencedPacks::Opened ReferencedPacks::look_for(duckdb_client_context context,
                                                  const std::string& path, bool stamped) {
  const fs::path absolute = pack_path(context, path);
  const PackOpener opener(context);
  if (is_url(path)) return {opener.open(path)};
  try {
    return {opener.open(absolute)};
  } catch (const Error& error) {
    const std::string root = root_folder(context);
    std::error_code ignored;
    if (root.empty() || fs::exists(fs::symlink_status(absolute, ignored))) throw;
    if (!stamped) {
      throw Error(error.kind(), std::string(error.what()) +
                                    "; it is not looked for in iac_root, because the reference "
                                    "has no stamp");
    }
    const fs::path folder = pack_path(context, root);
    const fs::path relative = absolute.relative_path();
    const auto parts = std::distance(relative.begin(), relative.end());
    auto first = std::next(relative.begin(), std::max<ptrdiff_t>(parts - max_folders - 1, 0));
    for (; first != relative.end(); ++first) {
      fs::path tail;
      for (auto part = first; part != relative.end(); ++part) tail /= *part;
      if (auto pack = try_open(opener, folder / tail)) return {std::move(pack), true};
    }
    throw;
  }
}

std::shared_ptr<const Pack> ReferencedPacks::open(duckdb_client_context context,
                                                  const Group& group) {
  const bool stamped = group.all_stamped();
  const auto found = packs_.find(group.path);
  if (found != packs_.end() && (stamped || !found->second.moved)) return found->second.pack;
  Opened opened = look_for(context, std::string(group.path), stamped);
  if (packs_.size() >= most_) packs_.clear();
  return packs_.insert_or_assign(std::string(group.path), std::move(opened)).first->second.pack;
}

}  // namespace iac::duckdb
