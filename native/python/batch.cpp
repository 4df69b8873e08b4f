#include "iac/batch.h"

#include <utility>

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

std::vector<BufferView> hold(const py::list& objects, size_t first) {
  std::vector<BufferView> views;
  views.reserve(objects.size());
  for (const py::handle object : objects) {
    try {
      views.emplace_back(object);
    } catch (const py::type_error& error) {
      throw py::type_error("item " + std::to_string(first + views.size()) + ": " + error.what());
    }
  }
  return views;
}

py::list failure_list(const std::vector<RowFailure>& failures) {
  py::list out;
  for (const RowFailure& failure : failures) {
    out.append(py::make_tuple(failure.position, exception_of(failure.error)));
  }
  return out;
}

OnError parse_on_error(const std::string& text) {
  if (text == "raise") return OnError::raise;
  if (text == "null") return OnError::null;
  if (text == "skip") return OnError::skip;
  throw py::value_error("on_error is '" + text + "', expected 'raise', 'null' or 'skip'");
}

// A Buffer that nothing else holds, for arrays that callers may write to.
struct MutableBuffer {
  Buffer buffer;
};

static py::buffer_info memory_of(const Buffer& buffer, bool read_only) {
  static std::byte nothing{};
  auto* data = buffer.data() != nullptr ? buffer.data() : &nothing;
  return {reinterpret_cast<uint8_t*>(data), static_cast<py::ssize_t>(buffer.size()), read_only};
}

// None, or arrays of each record's height, width and channels, and of its pixels' type.
static py::object images_of(const Batch& batch) {
  if (batch.images.empty()) return py::none();
  py::array_t<uint32_t> shapes({batch.images.size(), size_t{3}});
  py::array_t<uint8_t> types(static_cast<py::ssize_t>(batch.images.size()));
  auto shape = shapes.mutable_unchecked<2>();
  auto type = types.mutable_unchecked<1>();
  for (py::ssize_t i = 0; i < types.size(); ++i) {
    const ImageShape& image = batch.images[static_cast<size_t>(i)];
    shape(i, 0) = image.height;
    shape(i, 1) = image.width;
    shape(i, 2) = image.channels;
    type(i) = static_cast<uint8_t>(image.type);
  }
  return py::make_tuple(std::move(shapes), std::move(types));
}

void bind_batch(py::module_& module) {
  // In the order of the numbers that Batch.images uses.
  py::list names;
  for (int i = 0; i < pixel_types; ++i) names.append(name_of(static_cast<PixelType>(i)));
  module.attr("PIXEL_TYPES") = py::tuple(names);

  py::class_<Buffer>(module, "Buffer", py::buffer_protocol())
      .def_buffer([](const Buffer& buffer) { return memory_of(buffer, true); })
      .def("__len__", &Buffer::size);
  py::class_<MutableBuffer>(module, "MutableBuffer", py::buffer_protocol())
      .def_buffer([](const MutableBuffer& owned) { return memory_of(owned.buffer, false); });

  py::class_<Batch>(module, "Batch")
      .def_readonly("count", &Batch::count)
      .def_readonly("data", &Batch::data)
      .def_readonly("offsets", &Batch::offsets)
      .def("take_data",
           [](Batch& batch) { return MutableBuffer{std::exchange(batch.data, Buffer())}; })
      .def_readonly("unchecked", &Batch::unchecked)
      .def_property_readonly("images", &images_of)
      .def_property_readonly("validity",
                             [](const Batch& batch) -> py::object {
                               if (batch.validity.empty()) return py::none();
                               const auto& bits = batch.validity;
                               return to_bytes(as_bytes(bits.data(), bits.size()));
                             })
      .def_property_readonly("positions",
                             [](const Batch& batch) { return to_array(batch.positions); })
      .def_property_readonly("failures",
                             [](const Batch& batch) { return failure_list(batch.failures); });
}

}  // namespace iac::python
