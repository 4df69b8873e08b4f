#pragma once

#include <optional>
#include <string>

namespace iac::jxl {

// While one is alive, libjxl called by this thread prints nothing, and an assertion of its that
// fails is thrown as Failed instead of ending the process. What the library was working on is then
// in no state to be used or freed.
class Guard {
 public:
  struct Failed {};

  Guard();
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
};

}  // namespace iac::jxl
