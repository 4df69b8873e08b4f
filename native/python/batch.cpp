#include "iac/batch.h"

#include "python/bindings.h"

namespace iac::python {

BufferView::BufferView(py::handle object) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) == 0) return;
  PyErr_Clear();
  throw py::type_error("expected a bytes-like object with contiguous memory, not " +
                       std::string(Py_TYPE(object.ptr())->tp_name));
}

BufferView::BufferView(BufferView&& other) noexcept : view_(other.view_) { other.view_ = {}; }

BufferView::~BufferView() {
  if (view_.obj != nullptr) PyBuffer_Release(&view_);
}

OnError parse_on_error(const std::string& text) {
  if (text == "raise") return OnError::raise;
  if (text == "null") return OnError::null;
  if (text == "skip") return OnError::skip;
  throw py::value_error("on_error is '" + text + "', expected 'raise', 'null' or 'skip'");
}

DecodeLimits limits_of(uint64_t max_record_bytes, uint64_t max_batch_bytes) {
  return {max_record_bytes, max_batch_bytes};
}

void bind_batch(py::module_& module) {
  py::class_<Buffer>(module, "Buffer", py::buffer_protocol())
      .def_buffer([](const Buffer& buffer) {
        static std::byte nothing{};
        auto* data = buffer.data() != nullptr ? buffer.data() : &nothing;
        return py::buffer_info(reinterpret_cast<uint8_t*>(data),
                               static_cast<py::ssize_t>(buffer.size()), true);
      })
      .def("__len__", &Buffer::size);

  py::class_<Batch>(module, "Batch")
      .def_readonly("count", &Batch::count)
      .def_readonly("data", &Batch::data)
      .def_readonly("offsets", &Batch::offsets)
      .def_readonly("unchecked", &Batch::unchecked)
      .def_property_readonly("validity",
                             [](const Batch& batch) -> py::object {
                               if (batch.validity.empty()) return py::none();
                               const auto& bits = batch.validity;
                               return to_bytes(as_bytes(bits.data(), bits.size()));
                             })
      .def_property_readonly("positions",
                             [](const Batch& batch) { return to_array(batch.positions); })
      .def_property_readonly("failures", [](const Batch& batch) {
        py::list failures;
        for (const RowFailure& failure : batch.failures) {
          failures.append(py::make_tuple(failure.position, exception_of(failure.error)));
        }
        return failures;
      });
}

}  // namespace iac::python
