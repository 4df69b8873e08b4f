#include "iac/workers.h"

#include "python/bindings.h"

namespace iac::python {

void bind_workers(py::module_& module) {
  module.def("stop_requested", &stop_requested);
  py::class_<std::stop_source>(module, "StopSource")
      .def(py::init<>())
      .def("request_stop", &std::stop_source::request_stop)
      .def("stops_this_thread",
           [](const std::stop_source& source) { stop_this_thread_by(source.get_token()); });
}

}  // namespace iac::python
