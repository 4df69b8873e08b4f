// A Source that reads through a Python callable, for files that only Python can open.
#pragma once

#include <memory>
#include <string>

#include "iac/source.h"
#include "python/bindings.h"

namespace iac::python {

// `read(offset, length)` returns bytes; it is called with the GIL, from any thread. Needs the GIL.
std::shared_ptr<const Source> make_source(py::object read, uint64_t size, std::string identity);

}  // namespace iac::python
