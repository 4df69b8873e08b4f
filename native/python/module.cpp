#include "iac/header.h"
#include "python/bindings.h"

PYBIND11_MODULE(_native, module) {
  namespace py = pybind11;
  using namespace iac::python;

  module.doc() = "The C++ core of iac_query. Private: use the names of iac_query.";
  bind_area_sums(module);
  bind_errors(module);
  bind_batch(module);
  bind_codec(module);
  bind_documents(module);
  bind_pack(module);
  bind_region(module);
  bind_workers(module);
  bind_writer(module);
  module.attr("__version__") = IAC_VERSION;
  module.attr("MAGIC") = py::bytes(iac::magic.data(), iac::magic.size());
  module.attr("FORMAT_VERSION") = iac::format_version;
  module.attr("HEADER_BYTES") = iac::header_bytes;
}
