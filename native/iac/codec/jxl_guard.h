#pragma once

#include <cstddef>

namespace iac::jxl {

// While one is alive, libjxl called by this thread prints nothing, and an assertion of its that
// fails is thrown as Failed instead of ending the process. What the library was working on is then
// in no state to be used or freed.
// Only one at a time in a thread.
class Guard {
 public:
  struct Failed {};

  Guard();
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // From here on, Failed is thrown as well when the library asks for more at once.
  void limit_allocations(size_t bytes) const;
};

}  // namespace iac::jxl
