#include "iac/writer.h"

#include "python/bindings.h"

namespace iac::python {

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
