// A source whose requests are answered by Python callables, for files that only Python can open.
#pragma once

#include <memory>
#include <string>

#include "iac/remote.h"
#include "python/bindings.h"

namespace iac::python {

// `read(offset, length)` returns bytes, `ask_version()` a text that changes when the file does, as
// `version` is one, or is None where nothing tells. Both are called with the GIL, from any thread.
// Whoever reads must not hold the GIL; this function needs it.
std::shared_ptr<RemoteSource> make_source(py::object read, py::object ask_version, uint64_t size,
                                          std::string version, ReadStyle style);

}  // namespace iac::python
