#include "iac/documents.h"

#include "python/bindings.h"

namespace iac::python {
namespace {

py::str text_of(std::string_view text) { return {text.data(), text.size()}; }

// In the order of the fields of ClinicalDoc and ClinicalTextPairDoc.
py::tuple fields_of(const Document& document, DocumentKind kind) {
  const auto described = [&](auto... texts) {
    return py::make_tuple(text_of(document.doc_id), texts..., text_of(document.doc_type),
                          text_of(document.encounter), text_of(document.doc_category),
                          text_of(document.source), text_of(document.doc_timestamp),
                          document.episode_index);
  };
  const py::str text = text_of(document.text);
  if (kind == DocumentKind::text) return described(text);
  return described(text, text_of(document.compressed_text));
}

// Of each record (patient_id, institution, [fields of a document]), or the exception that says what
// is wrong with it. `payloads` are the decoded records, one behind the other, of the rows `rows` of
// the pack `path`.
py::list parse(py::handle payloads, const py::array_t<uint64_t, py::array::c_style>& offsets,
               const std::string& payload_type, unsigned workers, const std::string& path,
               const Rows& rows) {
  const DocumentKind kind = document_kind(payload_type).value();
  const BufferView view(payloads);
  std::vector<Bytes> records(static_cast<size_t>(rows.size()));
  Failures failures(path, {rows.data(), records.size()});
  std::vector<PatientDocuments> patients;
  Batch failed;
  {
    const Unlocked unlocked;
    for (size_t i = 0; i < records.size(); ++i) {
      const uint64_t start = offsets.data()[i];
      records[i] = view.bytes().subspan(start, offsets.data()[i + 1] - start);
    }
    patients = parse_documents(records, kind, workers, failures);
    failed = failures.finish(OnError::null, {}, std::vector<uint64_t>(records.size()));
  }
  py::list out;
  for (const PatientDocuments& patient : patients) {
    py::list documents;
    for (const Document& document : patient.documents) documents.append(fields_of(document, kind));
    out.append(
        py::make_tuple(text_of(patient.patient_id), text_of(patient.institution), documents));
  }
  for (const RowFailure& failure : failed.failures) {
    out[failure.position] = exception_of(failure.error);
  }
  return out;
}

}  // namespace

void bind_documents(py::module_& module) {
  module.def("parse_documents", &parse, py::arg("payloads"), py::arg("offsets"),
             py::arg("payload_type"), py::arg("workers"), py::arg("path"), py::arg("rows"));
}

}  // namespace iac::python
