#include "iac/error.h"

#include <cerrno>
#include <cstring>

namespace iac {

Error damaged_table(const std::string& reason) {
  return Error(Error::Kind::pack, "damaged Arrow data: " + reason);
}

Error system_error(int code, const std::string& doing) {
  const auto kind = code == ENOENT ? Error::Kind::not_found : Error::Kind::system;
  return Error(kind, doing + ": " + std::strerror(code), code);
}

}  // namespace iac
