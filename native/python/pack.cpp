#include "iac/pack.h"

#include "iac/dicom/dictionary.h"
#include "iac/dicom/headers.h"
#include "iac/dicom/modality.h"
#include "iac/dicom/value.h"
#include "iac/error.h"
#include "python/bindings.h"
#include "python/source.h"

namespace iac::python {

static std::span<const int64_t> span_of(const Rows& rows) {
  return {rows.data(), static_cast<size_t>(rows.size())};
}

static Batch read(const Pack& pack, const Rows& rows, bool decode, unsigned workers, bool verify,
                  const std::string& on_error, uint64_t max_record_bytes, uint64_t max_batch_bytes,
                  uint64_t max_samples, bool text, bool images) {
  const ReadOptions options{decode,
                            workers,
                            verify,
                            parse_on_error(on_error),
                            {max_record_bytes, max_batch_bytes, max_samples},
                            text,
                            images};
  const Unlocked unlocked;
  return pack.read(span_of(rows), options);
}

// Read straight into the bytes object.
static py::bytes read_one_stored(const Pack& pack, int64_t row, bool verify) {
  Span span;
  {
    const Unlocked unlocked;
    span = pack.locate_one(row);
  }
  const py::bytes record(static_cast<const char*>(nullptr), span.length);
  auto* const out = reinterpret_cast<std::byte*>(PyBytes_AS_STRING(record.ptr()));
  {
    const Unlocked unlocked;
    pack.read_one(row, span, verify, {out, span.length});
  }
  return record;
}

static py::bytes read_one(const Pack& pack, int64_t row, bool decode, bool verify,
                          uint64_t max_record_bytes) {
  if (!decode || pack.stored_as_is()) return read_one_stored(pack, row, verify);
  const ReadOptions options{decode, 1, verify, OnError::raise, {max_record_bytes}};
  Batch batch;
  {
    const Unlocked unlocked;
    batch = pack.read({&row, 1}, options);
  }
  return to_bytes(batch.data.bytes());
}

static py::tuple locate(const Pack& pack, const Rows& rows) {
  std::vector<uint64_t> offsets, lengths;
  {
    const Unlocked unlocked;
    for (const Span& span : pack.locate(span_of(rows))) {
      offsets.push_back(span.offset);
      lengths.push_back(span.length);
    }
  }
  return py::make_tuple(to_array(std::move(offsets)), to_array(std::move(lengths)));
}

static py::bytes read_data(const Pack& pack, uint64_t offset, uint64_t length) {
  if (length > pack.header().data.length) pack.read_data({offset, length}, {});  // throws
  std::vector<std::byte> out(length);
  {
    const Unlocked unlocked;
    pack.read_data({offset, length}, out);
  }
  return to_bytes(out);
}

// An Arrow stream in a capsule, as __arrow_c_stream__ returns it.
static py::capsule table(const Pack& pack, const std::string& name,
                         const std::optional<std::vector<std::string>>& columns) {
  const Table& table = name == "slide" ? *pack.slides() : *pack.index();
  std::vector<size_t> chosen;
  if (columns.has_value()) {
    for (const std::string& column : *columns) {
      const auto found = table.find(column);
      if (!found.has_value())
        throw py::key_error("no column '" + column + "' in the " + name + " table");
      chosen.push_back(*found);
    }
  } else {
    for (size_t i = 0; i < table.num_columns(); ++i) chosen.push_back(i);
  }
  auto stream = std::make_unique<ArrowArrayStream>();
  table.export_stream(std::move(chosen), stream.get());
  return py::capsule(stream.release(), "arrow_array_stream", [](PyObject* capsule) {
    auto* owned =
        static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, "arrow_array_stream"));
    if (owned->release != nullptr) owned->release(owned);
    delete owned;
  });
}

static py::bytes table_bytes(const Pack& pack, const std::string& name) {
  std::vector<std::byte> out;
  {
    const Unlocked unlocked;
    out = pack.read_table(name == "slide" ? pack.header().slide_table : pack.header().index_table);
  }
  return to_bytes(out);
}

static const char* kind_name(const Pack& pack) {
  switch (pack.layout().kind()) {
    case Layout::Kind::variable:
      return "variable";
    case Layout::Kind::fixed:
      return "fixed";
    case Layout::Kind::none:
      return "none";
  }
  return "none";
}

// A str or None for each row.
static py::list dicom_patient_ids(const Pack& pack, const Rows& rows, bool verify) {
  ReadOptions options;
  options.verify = verify;
  std::vector<std::optional<std::string>> ids;
  {
    const Unlocked unlocked;
    try {
      ids = pack.dicom_headers().patient_ids(span_of(rows), options);
    } catch (Error& error) {
      throw std::move(error).in(pack.path());
    }
  }
  return py::cast(ids);
}

// Of each row None, (slope, intercept), or (table, first value, bits).
static py::list dicom_modality_luts(const Pack& pack, const Rows& rows, bool verify) {
  ReadOptions options;
  options.verify = verify;
  std::vector<dicom::ModalityLut> luts;
  {
    const Unlocked unlocked;
    try {
      const auto headers = pack.dicom_headers().read(span_of(rows), options);
      for (size_t i = 0; i < headers.size(); ++i) {
        try {
          luts.emplace_back(*headers[i].header, headers[i].frame);
        } catch (Error& error) {
          throw std::move(error).at(span_of(rows)[i]);
        }
      }
    } catch (Error& error) {
      throw std::move(error).in(pack.path());
    }
  }
  py::list out;
  for (const dicom::ModalityLut& lut : luts) {
    switch (lut.kind()) {
      case dicom::ModalityLut::Kind::none:
        out.append(py::none());
        break;
      case dicom::ModalityLut::Kind::rescale:
        out.append(py::make_tuple(lut.slope(), lut.intercept()));
        break;
      case dicom::ModalityLut::Kind::table:
        out.append(py::make_tuple(
            py::array_t<uint16_t>(static_cast<py::ssize_t>(lut.table().size()), lut.table().data()),
            lut.first(), lut.bits()));
    }
  }
  return out;
}

// The text of each row's header, or of one element of it; empty where that is missing or empty.
// `max_batch_bytes` bounds what they are together, 0: by the memory that there is.
static Batch dicom_tags(const Pack& pack, const Rows& rows, const std::optional<std::string>& tag,
                        bool verify, const std::string& on_error, uint64_t max_batch_bytes) {
  const OnError rule = parse_on_error(on_error);
  const std::optional<uint32_t> number = tag ? std::optional(dicom::parse_tag(*tag)) : std::nullopt;
  ReadOptions options;
  options.verify = verify;
  options.limits.batch_bytes = max_batch_bytes;
  const Unlocked unlocked;
  try {
    Failures failures(pack.path(), span_of(rows));
    const auto headers = pack.dicom_headers().read(span_of(rows), options, failures);
    std::string texts;
    std::vector<uint64_t> lengths;
    for (size_t i = 0; i < headers.size(); ++i) {
      const size_t start = texts.size();
      try {
        if (!failures.at(i) && number) {
          const auto element = headers[i].header->find(*number);
          if (element) texts += dicom::value_text(*element).value_or("");
        } else if (!failures.at(i)) {
          texts.resize(start + headers[i].header->json_size());
          headers[i].header->write_json(texts.data() + start);
        }
      } catch (const Error& error) {
        failures.add(i, error);
      }
      lengths.push_back(texts.size() - start);
      if (max_batch_bytes > 0 && texts.size() > max_batch_bytes) {
        throw Error(Error::Kind::argument, "DICOM headers of more than " +
                                               std::to_string(max_batch_bytes) +
                                               " bytes, ask for fewer rows at a time");
      }
    }
    Buffer data = Buffer::allocate(texts.size());
    data.set_size(texts.size());
    std::memcpy(data.data(), texts.data(), texts.size());
    return failures.finish(rule, std::move(data), lengths);
  } catch (Error& error) {
    throw std::move(error).in(pack.path());
  }
}

void bind_pack(py::module_& module) {
  py::class_<Pack, std::shared_ptr<Pack>>(module, "Pack")
      .def(py::init([](const std::string& path) {
             const Unlocked unlocked;
             return std::const_pointer_cast<Pack>(Pack::open(path));
           }),
           py::arg("path"))
      .def_static(
          "from_source",
          [](py::object read, py::object ask_version, uint64_t size, std::string version,
             std::string path, uint64_t gap, uint64_t group, unsigned at_once) {
            const auto source = make_source(std::move(read), std::move(ask_version), size,
                                            std::move(version), {gap, group, at_once});
            const Unlocked unlocked;
            source->start(path);
            return std::const_pointer_cast<Pack>(Pack::open(source, std::move(path)));
          },
          py::arg("read"), py::arg("ask_version"), py::arg("size"), py::arg("version"),
          py::arg("path"), py::arg("gap"), py::arg("group"), py::arg("at_once"))
      .def_property_readonly("path", [](const Pack& pack) { return path_text(pack.path()); })
      .def_property_readonly("header_json", [](const Pack& pack) { return pack.header().text; })
      .def_property_readonly("kind", &kind_name)
      .def_property_readonly("decodes_to_images", &Pack::decodes_to_images)
      .def_property_readonly("is_dicom", &dicom::is_dicom)
      .def_property_readonly("num_records", &Pack::num_records)
      .def_property_readonly("num_slides",
                             [](const Pack& pack) { return pack.slides()->num_rows(); })
      .def_property_readonly("data_offset",
                             [](const Pack& pack) { return pack.header().data.offset; })
      .def_property_readonly("descriptor",
                             [](const Pack& pack) {
                               return dynamic_cast<const LocalSource&>(pack.source()).descriptor();
                             })
      .def("table", &table, py::arg("name"), py::arg("columns"))
      .def("table_bytes", &table_bytes, py::arg("name"))
      .def("locate", &locate, py::arg("rows"))
      .def(
          "stamps",
          [](const Pack& pack, const Rows& rows) {
            std::vector<uint32_t> stamps;
            {
              const Unlocked unlocked;
              stamps = pack.stamps(span_of(rows));
            }
            return to_array(std::move(stamps));
          },
          py::arg("rows"))
      .def("read", &read, py::arg("rows"), py::arg("decode"), py::arg("workers"), py::arg("verify"),
           py::arg("on_error"), py::arg("max_record_bytes"), py::arg("max_batch_bytes"),
           py::arg("max_samples"), py::arg("text") = false, py::arg("images") = false)
      .def("read_one", &read_one, py::arg("row"), py::arg("decode"), py::arg("verify"),
           py::arg("max_record_bytes"))
      .def("dicom_patient_ids", &dicom_patient_ids, py::arg("rows"), py::arg("verify"))
      .def("dicom_modality_luts", &dicom_modality_luts, py::arg("rows"), py::arg("verify"))
      .def("dicom_tags", &dicom_tags, py::arg("rows"), py::arg("tag"), py::arg("verify"),
           py::arg("on_error"), py::arg("max_batch_bytes") = 0)
      .def("read_data", &read_data, py::arg("offset"), py::arg("length"));
}

}  // namespace iac::python
