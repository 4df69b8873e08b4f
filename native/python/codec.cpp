#include "iac/codec/codec.h"

#include "iac/workers.h"
#include "python/bindings.h"

namespace iac::python {

static py::bytes encode(const Codec& codec, py::handle object) {
  const BufferView view(object);
  std::vector<std::byte> out;
  {
    const py::gil_scoped_release release;
    codec.encode(view.bytes(), out);
  }
  return to_bytes(out);
}

static py::list encode_many(const Codec& codec, const py::list& objects, unsigned workers) {
  const auto views = hold(objects);
  std::vector<std::vector<std::byte>> encoded(views.size());
  {
    const py::gil_scoped_release release;
    parallel_for(views.size(), worker_count(workers, views.size()),
                 [&](size_t i) { codec.encode(views[i].bytes(), encoded[i]); });
  }
  py::list out;
  for (const auto& payload : encoded) out.append(to_bytes(payload));
  return out;
}

static Batch decode_many(const Codec& codec, const py::list& payloads, unsigned workers,
                         const std::string& on_error, uint64_t max_record_bytes,
                         uint64_t max_batch_bytes) {
  const OnError rule = parse_on_error(on_error);
  const auto views = hold(payloads);
  const py::gil_scoped_release release;
  std::vector<Bytes> bytes;
  uint64_t total = 0;
  for (const BufferView& view : views) {
    bytes.push_back(view.bytes());
    total += bytes.back().size();
  }
  const Codec* one = &codec;
  Failures failures(bytes.size());
  BatchDecoder decoder(limits_of(max_record_bytes, max_batch_bytes), workers, total);
  decoder.add(bytes, {&one, 1}, 0, failures);
  return decoder.finish(rule, failures);
}

void bind_codec(py::module_& module) {
  py::class_<Codec, std::shared_ptr<Codec>>(module, "Codec")
      .def(py::init([](const std::string& name, const std::string& params) {
             return std::const_pointer_cast<Codec>(make_codec(name, params));
           }),
           py::arg("name"), py::arg("params"))
      .def_static(
          "for_reading",
          [](const std::string& name, const std::string& params) {
            return std::const_pointer_cast<Codec>(make_decoder(name, params));
          },
          py::arg("name"), py::arg("params"))
      .def_property_readonly("name", &Codec::name)
      .def_property_readonly("parameters", &Codec::parameters)
      .def("encode", &encode, py::arg("object"))
      .def("encode_many", &encode_many, py::arg("objects"), py::arg("workers"))
      .def("decode_many", &decode_many, py::arg("payloads"), py::arg("workers"),
           py::arg("on_error"), py::arg("max_record_bytes"), py::arg("max_batch_bytes"));
}

}  // namespace iac::python
