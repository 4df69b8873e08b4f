#include "iac/error.h"
#include "python/bindings.h"

namespace iac::python {

static const char* kind_name(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::pack:
      return "pack";
    case Error::Kind::not_found:
      return "not_found";
    case Error::Kind::system:
      return "system";
    case Error::Kind::checksum:
      return "checksum";
    case Error::Kind::stale:
      return "stale";
    case Error::Kind::codec:
      return "codec";
    case Error::Kind::index:
      return "index";
    case Error::Kind::argument:
      return "argument";
  }
  return "pack";
}

py::object path_text(const std::string& text) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeFSDefaultAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

py::object exception_of(const Error& error) {
  const py::object pack = error.pack().empty() ? py::none() : path_text(error.pack());
  const py::object row = error.row() < 0 ? py::none() : py::object(py::int_(error.row()));
  return py::module_::import("iac_query.errors")
      .attr("from_native")(kind_name(error.kind()), path_text(error.what()),
                           path_text(error.reason()), pack, row, error.code());
}

void bind_errors(py::module_&) {
  py::register_local_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      const py::object exception = exception_of(error);
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    }
  });
}

}  // namespace iac::python
