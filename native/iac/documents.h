// Records that hold the documents of one patient, as clinical_text and clinical_text_pair packs
// have them. A decoded payload is
//
//   uint32, little-endian: bytes of the manifest | manifest, a JSON object | text region
//
// and the manifest says for each document where in the text region its text lies.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iac/batch.h"

namespace iac {

enum class DocumentKind {
  text,  // of each document its text
  pair,  // of each document its source text and a compressed one
};

// None: records of that payload type are no documents.
std::optional<DocumentKind> document_kind(std::string_view payload_type);

struct Document {
  std::string doc_id, doc_type, doc_category, doc_timestamp, encounter, source;
  int64_t episode_index = -1;        // -1: none
  std::string_view text;             // of a pair the source text; it lies in the payload
  std::string_view compressed_text;  // of a pair only
};

struct PatientDocuments {
  std::string patient_id, institution;
  std::vector<Document> documents;  // in the manifest's order
};

// What stands behind the manifest. Throws Error(codec) when the payload ends before.
Bytes text_region(Bytes payload);

// Reads a manifest and checks all of it. Keys that it does not know are passed over. Throws
// Error(codec) for a manifest that is not JSON, or says something twice, of a wrong type, or of
// another schema version; and for texts that are not inside the region, overlap, or are not UTF-8.
PatientDocuments parse_documents(Bytes payload, DocumentKind kind);

// The same for many payloads, in parallel. Of those that fail, the result is empty.
std::vector<PatientDocuments> parse_documents(std::span<const Bytes> payloads, DocumentKind kind,
                                              unsigned workers, Failures& failures);

// The records of a batch, one by one.
std::vector<Bytes> payloads_of(const Batch& batch);

}  // namespace iac
