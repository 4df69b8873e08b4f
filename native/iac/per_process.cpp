#include "iac/per_process.h"

#include "iac/platform.h"

namespace iac {

static std::atomic<unsigned> generation{0};

[[maybe_unused]] static const bool registered = [] {
  platform::on_fork_child([] { generation.fetch_add(1, std::memory_order_relaxed); });
  return true;
}();

unsigned fork_generation() { return generation.load(std::memory_order_relaxed); }

}  // namespace iac
