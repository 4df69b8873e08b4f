// What the files of this folder give to the module. Nothing here but conversion.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <vector>

#include "iac/batch.h"
#include "iac/bytes.h"
#include "iac/decode.h"
#include "iac/interrupt.h"
#include "iac/workers.h"

namespace iac::python {

namespace py = pybind11;

using Rows = py::array_t<int64_t, py::array::c_style>;

void bind_area_sums(py::module_& module);
void bind_errors(py::module_& module);
void bind_batch(py::module_& module);
void bind_codec(py::module_& module);
void bind_documents(py::module_& module);
void bind_pack(py::module_& module);
void bind_region(py::module_& module);
void bind_workers(py::module_& module);
void bind_writer(py::module_& module);

// Work without the interpreter's lock. Where the core checks for interrupts it ends when nobody
// waits for its result any longer, and with what the handler of a signal raises: Ctrl-C, say.
class Unlocked {
 public:
  Unlocked() : interruptible_(check) {}

 private:
  static void check() {
    require_wanted();
    const py::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }

  py::gil_scoped_release release_;
  Interruptible interruptible_;
};

// The Python exception for an Error (see iac_query.errors).
py::object exception_of(const Error& error);

// Of each failure (position, exception).
py::list failure_list(const std::vector<RowFailure>& failures);

// Text that may hold a path, which need not be UTF-8, as Python's own functions show paths.
py::object path_text(const std::string& text);

OnError parse_on_error(const std::string& text);

// The memory of bytes-like objects, held while it is used without the GIL.
class BufferView {
 public:
  explicit BufferView(py::handle object);
  BufferView(BufferView&& other) noexcept;
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;
  ~BufferView();

  Bytes bytes() const { return as_bytes(view_.buf, static_cast<size_t>(view_.len)); }

 private:
  Py_buffer view_{};
};

// The memory of all of them. An error names the item, counted from `first`.
std::vector<BufferView> hold(const py::list& objects, size_t first = 0);

// Python bytes holding a copy.
inline py::bytes to_bytes(Bytes data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

// A NumPy array that takes over the vector.
template <class T>
py::array_t<T> to_array(std::vector<T> values) {
  auto* owned = new std::vector<T>(std::move(values));
  const py::capsule owner(owned, [](void* p) { delete static_cast<std::vector<T>*>(p); });
  return py::array_t<T>(static_cast<py::ssize_t>(owned->size()), owned->data(), owner);
}

}  // namespace iac::python
