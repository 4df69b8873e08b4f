#include "iac/writer.h"

#include "python/bindings.h"

namespace iac::python {

using Offsets = py::array_t<int64_t, py::array::c_style>;

static std::unique_ptr<Writer> make(const std::string& path, bool overwrite,
                                    const std::string& header_json, uint64_t slide_table_length,
                                    uint64_t index_table_length, uint64_t num_slides,
                                    uint64_t num_records) {
  const py::gil_scoped_release release;
  const Segments segments{slide_table_length, index_table_length, 0, num_slides, num_records};
  return std::make_unique<Writer>(std::make_unique<OutputFile>(path, overwrite), header_json,
                                  segments);
}

// Writes without the GIL.
static void append(Writer& writer, const py::list& payloads) {
  const auto views = hold(payloads, writer.offsets().size());
  const py::gil_scoped_release release;
  for (const BufferView& view : views) writer.append(view.bytes());
}

// Records as an Arrow array of large_binary has them: its data, and the offsets of its part of it.
static void append_all(Writer& writer, py::handle data, const Offsets& offsets) {
  const BufferView view(data);
  const auto* const first = reinterpret_cast<const uint64_t*>(offsets.data());
  const std::span<const uint64_t> places(first, static_cast<size_t>(offsets.size()));
  const py::gil_scoped_release release;
  writer.append_all(view.bytes(), places);
}

static void append_data(Writer& writer, py::handle data) {
  const BufferView view(data);
  const py::gil_scoped_release release;
  writer.append_data(view.bytes());
}

void bind_writer(py::module_& module) {
  py::class_<Writer>(module, "Writer")
      .def(py::init(&make), py::arg("path"), py::arg("overwrite"), py::arg("header_json"),
           py::arg("slide_table_length"), py::arg("index_table_length"), py::arg("num_slides"),
           py::arg("num_records"))
      .def("append", &append, py::arg("payloads"))
      .def("append_all", &append_all, py::arg("data"), py::arg("offsets"))
      .def("append_data", &append_data, py::arg("data"))
      .def("abandon", &Writer::abandon)
      .def_property_readonly("offsets", [](const Writer& w) { return to_array(w.offsets()); })
      .def_property_readonly("lengths", [](const Writer& w) { return to_array(w.lengths()); })
      .def_property_readonly("crc32s", [](const Writer& w) { return to_array(w.crc32s()); })
      .def_property_readonly("data_length", &Writer::data_length)
      .def(
          "finish",
          [](Writer& writer, py::handle slide_table, py::handle index_table) {
            const BufferView slides(slide_table), index(index_table);
            const py::gil_scoped_release release;
            writer.finish(slides.bytes(), index.bytes());
          },
          py::arg("slide_table"), py::arg("index_table"));
}

}  // namespace iac::python
