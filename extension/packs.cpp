#include "packs.h"

#include <iac/error.h>
#include <iac/per_process.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "duckdb_source.h"
#include "files.h"
#include "paths.h"
#include "settings.h"

namespace iac::duckdb {
namespace {

class PackCache {
 public:
  // Keeps what the limits say, this one among them if `keep`.
  std::shared_ptr<const Pack> open(const std::string& path, bool keep, const CacheLimits& limits) {
    const std::string identity = local_identity(path);
    {
      const std::lock_guard lock(mutex_);
      const auto found = packs_.find(path);
      if (found != packs_.end() && found->second.pack->source().identity() == identity) {
        found->second.last_use = ++clock_;
        found->second.pack->limit_caches(limits.bytes_a_table, Table::Keep::when_read_again);
        return found->second.pack;
      }
    }
    auto pack = Pack::open(path);
    pack->limit_caches(limits.bytes_a_table, Table::Keep::when_read_again);
    if (!keep) return pack;
    const std::lock_guard lock(mutex_);
    Entry& entry = packs_[path];
    bytes_ -= entry.bytes;
    entry = {pack, ++clock_};
    return pack;
  }

  // After a use of the pack, when it may hold more than before.
  void settle(const Pack& pack, const CacheLimits& limits) {
    const std::lock_guard lock(mutex_);
    const auto found = packs_.find(pack.path());
    if (found != packs_.end() && found->second.pack.get() == &pack) {
      bytes_ -= std::exchange(found->second.bytes, pack.cached_bytes());
      bytes_ += found->second.bytes;
    }
    evict(limits);
  }

 private:
  struct Entry {
    std::shared_ptr<const Pack> pack;
    uint64_t last_use = 0;
    uint64_t bytes = 0;  // of its tables, in memory
  };

  // Drops those not used for longest; how large the last one used is does not count.
  void evict(const CacheLimits& limits) {
    while (packs_.size() > limits.packs || (packs_.size() > 1 && bytes_ > limits.bytes)) {
      const auto oldest = std::min_element(
          packs_.begin(), packs_.end(),
          [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
      bytes_ -= oldest->second.bytes;
      packs_.erase(oldest);
    }
  }

  std::mutex mutex_;
  std::map<std::string, Entry> packs_;
  uint64_t bytes_ = 0;
  uint64_t clock_ = 0;
};

// Leaked on purpose: queries may still run while the process ends.
PackCache& cache() {
  static auto* const instance = new PerProcess<PackCache>;
  return **instance;
}

std::shared_ptr<const Pack> open_url(duckdb_client_context context, const std::string& url,
                                     const CacheLimits& limits) {
  try {
    auto pack = Pack::open(DuckdbSource::open(context, url), url);
    pack->limit_caches(limits.bytes_a_table);
    return pack;
  } catch (Error& error) {
    throw std::move(error).in(url);
  }
}

}  // namespace

CacheLimits::CacheLimits(duckdb_client_context context) {
  const uint64_t memory = memory_limit(context);
  packs = cache_packs(context);
  bytes = std::min(memory / 4, uint64_t{1} << 30);
  bytes_a_table = std::min(memory / 8 / duckdb_threads(context), Table::cache_limit);
}

PackOpener::PackOpener(duckdb_client_context context)
    : context_(context), limits_(context), has_path_rules_(!external_access(context)) {}

std::shared_ptr<const Pack> PackOpener::open(const std::string& path, bool keep) const {
  if (is_url(path)) return open_url(context_, path, limits_);
  check_access(path);
  auto pack = cache().open(path, keep, limits_);
  const Pack* const opened = pack.get();
  return {opened, [pack = std::move(pack), limits = limits_](const Pack*) {
            cache().settle(*pack, limits);
          }};
}

// Without rules about paths DuckDB can only forbid all files of this machine: what it says of one
// holds for every other.
void PackOpener::check_access(const std::string& path) const {
  if (allows_) return;
  check_readable(context_, path);
  allows_ = !has_path_rules_;
}

std::shared_ptr<const Pack> open_pack_anew(duckdb_client_context context, const std::string& path) {
  if (is_url(path)) return open_url(context, path, CacheLimits(context));
  check_readable(context, path);
  return Pack::open(path);
}

}  // namespace iac::duckdb
