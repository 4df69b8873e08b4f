// The packs that references lead to, those that are no longer where a reference says included.
#pragma once

#include <iac/pack.h>

#include <map>
#include <memory>
#include <string>

#include "groups.h"
#include "handles.h"

namespace iac::duckdb {

// Packs stay open while a query runs, and the ones they were when it first used them.
//
// The pack of a reference is the one at its path or, where there is none and the setting iac_root
// names a folder, the one that lies there under the longest end of that path: of /old/site/x.iac
// first root/old/site/x.iac, then root/site/x.iac, then root/x.iac (32 folders at most). Without a
// stamp nothing would tell that pack from another of the same name, so that none is looked for.
class ReferencedPacks {
 public:
  // Keeps up to `most` packs.
  explicit ReferencedPacks(size_t most) : most_(most) {}

  // The pack of a group of references. Throws Error.
  std::shared_ptr<const Pack> open(duckdb_client_context context, const Group& group);

 private:
  struct Opened {
    std::shared_ptr<const Pack> pack;
    bool moved = false;  // it is not at the path of the references
  };
  static Opened look_for(duckdb_client_context context, const std::string& path, bool stamped);

  size_t most_;
  std::map<std::string, Opened, std::less<>> packs_;
};

}  // namespace iac::duckdb
