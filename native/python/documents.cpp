#include "iac/documents.h"

#include <algorithm>
#include <utility>

#include "python/bindings.h"

namespace iac::python {
namespace {

using Offsets = py::array_t<uint64_t, py::array::c_style>;

py::str text_of(std::string_view text) { return {text.data(), text.size()}; }

// In the order of the fields of ClinicalDoc and ClinicalTextPairDoc.
py::tuple fields_of(const Document& document, DocumentKind kind) {
  const auto described = [&](auto... texts) {
    return py::make_tuple(text_of(document.doc_id), texts..., text_of(document.doc_type),
                          text_of(document.encounter), text_of(document.doc_category),
                          text_of(document.source), text_of(document.doc_timestamp),
                          document.episode_index);
  };
  const py::str first = text_of(document.text);
  if (kind == DocumentKind::text) return described(first);
  return described(first, text_of(document.compressed_text));
}

// Decoded records, one behind the other, and what is in them.
struct Parsed {
  DocumentKind kind;
  BufferView payloads;  // the texts lie in there
  std::vector<PatientDocuments> patients;
  Failures failures;

  Parsed(py::handle memory, const Offsets& offsets, const std::string& payload_type,
         unsigned workers, const std::string& path, const Rows& rows)
      : kind(document_kind(payload_type).value()),
        payloads(memory),
        failures(path, {rows.data(), static_cast<size_t>(rows.size())}) {
    const Unlocked unlocked;
    std::vector<Bytes> records(static_cast<size_t>(rows.size()));
    for (size_t i = 0; i < records.size(); ++i) {
      const uint64_t start = offsets.data()[i];
      records[i] = payloads.bytes().subspan(start, offsets.data()[i + 1] - start);
    }
    patients = parse_documents(records, kind, workers, failures);
  }

  // What is wrong with records, by their number.
  std::vector<RowFailure> failed() {
    std::vector<uint64_t> lengths(patients.size());
    return failures.finish(OnError::null, {}, lengths).failures;
  }
};

// Of each record (patient_id, institution, [fields of a document]), or the exception that says what
// is wrong with it. `payloads` are the decoded records, one behind the other, of the rows `rows` of
// the pack `path`.
py::list parse(py::handle payloads, const Offsets& offsets, const std::string& payload_type,
               unsigned workers, const std::string& path, const Rows& rows) {
  Parsed parsed(payloads, offsets, payload_type, workers, path, rows);
  py::list out;
  for (const PatientDocuments& patient : parsed.patients) {
    py::list documents;
    for (const Document& document : patient.documents) {
      documents.append(fields_of(document, parsed.kind));
    }
    out.append(
        py::make_tuple(text_of(patient.patient_id), text_of(patient.institution), documents));
  }
  for (const RowFailure& failure : parsed.failed()) {
    out[failure.position] = exception_of(failure.error);
  }
  return out;
}

using Field = std::string_view (*)(const Document&);

template <auto member>
std::string_view text(const Document& document) {
  return document.*member;
}

// Columns of texts, by their names.
std::vector<std::pair<const char*, Field>> fields(DocumentKind kind) {
  const bool pair = kind == DocumentKind::pair;
  std::vector<std::pair<const char*, Field>> all{
      {"doc_id", text<&Document::doc_id>},
      {"doc_type", text<&Document::doc_type>},
      {"doc_category", text<&Document::doc_category>},
      {"doc_timestamp", text<&Document::doc_timestamp>},
      {"encounter", text<&Document::encounter>},
      {"source", text<&Document::source>},
      {pair ? "source_text" : "text", text<&Document::text>}};
  if (pair) all.emplace_back("compressed_text", text<&Document::compressed_text>);
  return all;
}

// The texts of a field, one behind the other, and where each begins and the last one ends.
py::tuple texts_of(const std::vector<const Document*>& documents, Field field) {
  std::vector<int64_t> offsets{0};
  Buffer texts;
  {
    const Unlocked unlocked;
    for (const Document* document : documents) {
      offsets.push_back(offsets.back() + static_cast<int64_t>(field(*document).size()));
    }
    texts = Buffer::allocate(static_cast<size_t>(offsets.back()));
    texts.set_size(static_cast<size_t>(offsets.back()));
    std::byte* out = texts.data();
    for (const Document* document : documents) {
      const std::string_view text = field(*document);
      out = std::copy_n(reinterpret_cast<const std::byte*>(text.data()), text.size(), out);
    }
  }
  return py::make_tuple(std::move(texts), to_array(std::move(offsets)));
}

// The documents of all records as columns: (offsets of the records, {field: (texts, their
// offsets)}, episodes, failures as of a Batch). A record that failed has none.
py::tuple columns(py::handle payloads, const Offsets& offsets, const std::string& payload_type,
                  unsigned workers, const std::string& path, const Rows& rows) {
  Parsed parsed(payloads, offsets, payload_type, workers, path, rows);
  std::vector<const Document*> documents;
  std::vector<int64_t> ends{0};
  std::vector<int32_t> episodes;
  for (size_t i = 0; i < parsed.patients.size(); ++i) {
    const auto& found = parsed.patients[i].documents;
    const bool fit = std::all_of(found.begin(), found.end(), [](const Document& document) {
      return std::in_range<int32_t>(document.episode_index);
    });
    if (!fit) {
      parsed.failures.add(i, {Error::Kind::codec, "Int32 cannot hold an episode_index of it"});
    }
    for (size_t d = 0; fit && d < found.size(); ++d) {
      documents.push_back(&found[d]);
      episodes.push_back(static_cast<int32_t>(found[d].episode_index));
    }
    ends.push_back(static_cast<int64_t>(documents.size()));
  }
  py::dict texts;
  for (const auto& [name, field] : fields(parsed.kind)) texts[name] = texts_of(documents, field);
  return py::make_tuple(to_array(std::move(ends)), texts, to_array(std::move(episodes)),
                        failure_list(parsed.failed()));
}

}  // namespace

void bind_documents(py::module_& module) {
  module.def("parse_documents", &parse, py::arg("payloads"), py::arg("offsets"),
             py::arg("payload_type"), py::arg("workers"), py::arg("path"), py::arg("rows"));
  module.def("document_columns", &columns, py::arg("payloads"), py::arg("offsets"),
             py::arg("payload_type"), py::arg("workers"), py::arg("path"), py::arg("rows"));
}

}  // namespace iac::python
