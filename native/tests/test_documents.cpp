#include <catch2/catch.hpp>

#include "iac/documents.h"
#include "iac/error.h"

using namespace iac;

namespace {

std::string framed(const std::string& manifest, const std::string& region) {
  const auto length = static_cast<uint32_t>(manifest.size());
  std::string payload(reinterpret_cast<const char*>(&length), sizeof length);
  return payload + manifest + region;
}

Bytes bytes_of(const std::string& text) { return as_bytes(text.data(), text.size()); }

}  // namespace

TEST_CASE("documents are found by payload type") {
  CHECK(document_kind("clinical_text") == DocumentKind::text);
  CHECK(document_kind("clinical_text_pair") == DocumentKind::pair);
  CHECK_FALSE(document_kind("note").has_value());
  CHECK_FALSE(document_kind("").has_value());
}

TEST_CASE("a manifest's documents, their texts in the payload") {
  const std::string payload = framed(
      R"({"patient_id": "p\u00e9", "docs": [{"doc_id": "b", "offset": 3, "length": 2, "source": "s"},)"
      R"( {"doc_id": "a", "episode_index": 4, "offset": 0, "length": 3, "x": {"docs": [1]}}]})",
      "onetwo");
  const PatientDocuments patient = parse_documents(bytes_of(payload), DocumentKind::text);
  CHECK(patient.patient_id == "pé");
  REQUIRE(patient.documents.size() == 2);
  CHECK(patient.documents[0].doc_id == "b");
  CHECK(patient.documents[0].source == "s");
  CHECK(patient.documents[0].text == "tw");
  CHECK(patient.documents[0].episode_index == -1);
  CHECK(patient.documents[1].text == "one");
  CHECK(patient.documents[1].episode_index == 4);
  CHECK(patient.documents[1].text.data() == payload.data() + payload.size() - 6);
}

TEST_CASE("pairs have places of their own") {
  const std::string payload =
      framed(R"({"docs": [{"doc_id": "d", "offset": "not its key", "source_offset": 0,)"
             R"( "source_length": 4, "compressed_offset": 4, "compressed_length": 1}]})",
             "longs");
  const PatientDocuments patient = parse_documents(bytes_of(payload), DocumentKind::pair);
  CHECK(patient.documents.at(0).text == "long");
  CHECK(patient.documents.at(0).compressed_text == "s");
  CHECK_THROWS_AS(parse_documents(bytes_of(payload), DocumentKind::text), Error);
}

TEST_CASE("documents that fail leave the others") {
  const std::string good = framed(R"({"docs": [{"doc_id": "d", "offset": 0, "length": 1}]})", "x");
  const std::string bad = framed(R"({"docs": [{"doc_id": "d", "offset": 0, "length": 2}]})", "x");
  const std::vector<Bytes> payloads{bytes_of(good), bytes_of(bad), bytes_of(good)};
  Failures failures(payloads.size());
  const auto patients = parse_documents(payloads, DocumentKind::text, 2, failures);
  CHECK(patients[0].documents.size() == 1);
  CHECK(patients[1].documents.empty());
  CHECK(patients[2].documents.at(0).text == "x");
  const Batch batch = failures.finish(OnError::null, {}, std::vector<uint64_t>(3));
  REQUIRE(batch.failures.size() == 1);
  CHECK(batch.failures[0].position == 1);
}

TEST_CASE("text regions are kept, one behind the other") {
  std::string data = framed("{}", "one") + framed("{}", "") + "broken" + framed("{}", "two");
  std::vector<uint64_t> lengths{9, 6, 6, 9};
  Failures failures(4);
  keep_parts({reinterpret_cast<std::byte*>(data.data()), data.size()}, lengths, text_region,
             failures);
  CHECK(lengths == std::vector<uint64_t>{3, 0, 0, 3});
  CHECK(data.substr(0, 6) == "onetwo");
  CHECK(failures.at(2));
  CHECK_FALSE(failures.at(1));
}
