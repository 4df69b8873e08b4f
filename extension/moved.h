// Packs that are no longer where a reference says.
#pragma once

#include <iac/pack.h>

#include <memory>
#include <string>

#include "handles.h"

namespace iac::duckdb {

struct ReferencedPack {
  std::shared_ptr<const Pack> pack;
  bool moved = false;  // it is not at the path of the reference
};

// The pack of a reference: the one at its path or, where there is none and the setting iac_root
// names a folder, the one that lies there under the longest end of that path: of /old/site/x.iac
// first root/old/site/x.iac, then root/site/x.iac, then root/x.iac (32 folders at most). `stamped`:
// the reference has a stamp. Without one nothing would tell a pack from another of the same name,
// so none is looked for. Throws Error.
ReferencedPack open_referenced(duckdb_client_context context, const std::string& path,
                               bool stamped);

}  // namespace iac::duckdb
