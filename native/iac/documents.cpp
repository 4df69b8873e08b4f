#include "iac/documents.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "iac/error.h"
#include "iac/interrupt.h"
#include "iac/utf8.h"
#include "iac/workers.h"

namespace iac {
namespace {

constexpr size_t prefix_bytes = sizeof(uint32_t);
// A document's entry may be much smaller than what it becomes in memory.
constexpr size_t max_manifest_bytes = size_t{128} << 20;
constexpr int max_depth = 127;  // as that of headers
constexpr uint64_t schema_version = 1;

Error bad(const std::string& reason) { return {Error::Kind::codec, reason}; }

struct Frame {
  std::string_view manifest;
  Bytes region;
};

Frame frame_of(Bytes payload) {
  if (payload.size() < prefix_bytes) {
    throw bad("payload of " + std::to_string(payload.size()) +
              " bytes is too short for the length of a manifest");
  }
  const auto length = load<uint32_t>(payload.data());
  const Bytes rest = payload.subspan(prefix_bytes);
  if (length > rest.size()) {
    throw bad("manifest of " + std::to_string(length) + " bytes ends outside the payload of " +
              std::to_string(payload.size()) + " bytes");
  }
  return {{reinterpret_cast<const char*>(rest.data()), length}, rest.subspan(length)};
}

// What the manifest says of one text.
struct TextSpan {
  uint64_t offset = 0, length = 0;
};

struct Key {
  std::string_view name;
  // One of these is where its value goes.
  std::string Document::* text = nullptr;
  int64_t Document::* integer = nullptr;
  uint64_t TextSpan::* place = nullptr;
  size_t span = 0;  // of a place: the document's first or second text
  bool required = false;
};

constexpr std::array common_keys{
    Key{.name = "doc_id", .text = &Document::doc_id, .required = true},
    Key{.name = "doc_type", .text = &Document::doc_type},
    Key{.name = "doc_category", .text = &Document::doc_category},
    Key{.name = "doc_timestamp", .text = &Document::doc_timestamp},
    Key{.name = "encounter", .text = &Document::encounter},
    Key{.name = "source", .text = &Document::source},
    Key{.name = "episode_index", .integer = &Document::episode_index},
};

constexpr Key place_key(std::string_view name, uint64_t TextSpan::* place, size_t span) {
  return {.name = name, .place = place, .span = span, .required = true};
}

std::vector<Key> keys_of(DocumentKind kind) {
  std::vector<Key> keys(common_keys.begin(), common_keys.end());
  if (kind == DocumentKind::text) {
    keys.push_back(place_key("offset", &TextSpan::offset, 0));
    keys.push_back(place_key("length", &TextSpan::length, 0));
  } else {
    keys.push_back(place_key("source_offset", &TextSpan::offset, 0));
    keys.push_back(place_key("source_length", &TextSpan::length, 0));
    keys.push_back(place_key("compressed_offset", &TextSpan::offset, 1));
    keys.push_back(place_key("compressed_length", &TextSpan::length, 1));
  }
  return keys;
}

struct Entry {
  Document document;
  std::array<TextSpan, 2> spans;
};

// Takes the manifest as the parser comes across it. What it throws passes through the parser.
class ManifestReader {
 public:
  explicit ManifestReader(DocumentKind kind)
      : keys_(keys_of(kind)),
        version_name_(kind == DocumentKind::text ? "text_schema_version" : "pair_schema_version") {}

  PatientDocuments patient;  // without documents
  std::vector<Entry> entries;

  // What nlohmann's parser calls.
  bool null() { return value("null", nullptr, nullptr); }
  bool boolean(bool) { return value("a boolean", nullptr, nullptr); }
  bool number_integer(int64_t number) { return value("an integer", nullptr, &number); }
  bool number_unsigned(uint64_t number) {
    if (number > INT64_MAX) return value("an integer beyond 64 bits", nullptr, nullptr);
    const auto integer = static_cast<int64_t>(number);
    return value("an integer", nullptr, &integer);
  }
  bool number_float(double, const std::string&) {
    return value("a floating-point number", nullptr, nullptr);
  }
  bool string(std::string& text) { return value("text", &text, nullptr); }
  bool binary(nlohmann::json::binary_t&) { return false; }  // JSON has none

  bool start_object(size_t) {
    enter();
    if (depth_ == doc_depth && in_docs_) {
      entries.emplace_back();
      seen_ = 0;
    } else if (depth_ > 1) {
      refuse("an object");
    }
    return true;
  }
  bool key(std::string& name) {
    if (depth_ == doc_depth && in_docs_) {
      const auto found = std::find_if(keys_.begin(), keys_.end(),
                                      [&](const Key& key) { return key.name == name; });
      key_ = found == keys_.end() ? nullptr : &*found;
      if (key_ != nullptr) see(static_cast<size_t>(found - keys_.begin()), seen_, name);
    } else if (depth_ == 1) {
      const std::array names{std::string_view("docs"), std::string_view("patient_id"),
                             std::string_view("institution"), version_name_};
      const auto found = std::find(names.begin(), names.end(), name);
      field_ = static_cast<Field>(found - names.begin());
      if (field_ != Field::other) see(static_cast<size_t>(field_), seen_fields_, name);
    }
    return true;
  }
  bool end_object() {
    if (depth_ == doc_depth && in_docs_) {
      for (size_t i = 0; i < keys_.size(); ++i) {
        if (keys_[i].required && (seen_ >> i & 1) == 0) {
          throw bad(where() + std::string(keys_[i].name) + " is missing");
        }
      }
    }
    --depth_;
    return true;
  }
  bool start_array(size_t) {
    enter();
    if (depth_ == doc_depth - 1 && field_ == Field::docs) {
      in_docs_ = true;
    } else {
      refuse("an array");
    }
    return true;
  }
  bool end_array() {
    if (depth_ == doc_depth - 1) in_docs_ = false;
    --depth_;
    return true;
  }
  // Its own message would quote what it read.
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    throw bad("the manifest is not valid JSON, from byte " + std::to_string(position) + " on");
  }

 private:
  static constexpr int doc_depth = 3;  // manifest, docs, document
  enum class Field { docs, patient_id, institution, version, other };

  void enter() {
    if (++depth_ > max_depth) {
      throw bad("the manifest is nested deeper than " + std::to_string(max_depth) + " levels");
    }
  }

  std::string where() const {
    return in_docs_ ? "document " + std::to_string(entries.size() - 1) + ": " : "manifest: ";
  }

  void see(size_t bit, uint32_t& seen, const std::string& name) const {
    if ((seen >> bit & 1) != 0) throw bad(where() + name + " is there twice");
    seen |= 1u << bit;
  }

  // Objects and arrays where they have no business; those of unknown keys are passed over.
  void refuse(const char* what) {
    --depth_;
    value(what, nullptr, nullptr);
    ++depth_;
  }

  // A value of the key that came last. `text` and `integer` are null for other types.
  bool value(const char* what, std::string* text, const int64_t* integer) {
    if (depth_ == 0) throw bad(std::string("the manifest is ") + what + ", expected an object");
    if (depth_ == 1) {
      take_field(what, text, integer);
    } else if (depth_ == doc_depth - 1 && in_docs_) {
      throw bad("manifest: an entry of docs is " + std::string(what) + ", expected an object");
    } else if (depth_ == doc_depth && in_docs_ && key_ != nullptr) {
      take_key(what, text, integer);
    }
    return true;
  }

  void take_field(const char* what, std::string* text, const int64_t* integer) {
    switch (field_) {
      case Field::docs:
        throw bad(std::string("manifest: docs is ") + what + ", expected an array");
      case Field::patient_id:
        return take_text("patient_id", patient.patient_id, what, text);
      case Field::institution:
        return take_text("institution", patient.institution, what, text);
      case Field::version:
        if (integer != nullptr && *integer == schema_version) return;
        throw bad("manifest: " + std::string(version_name_) + " is " +
                  (integer != nullptr ? std::to_string(*integer) : what) + ", this reads version " +
                  std::to_string(schema_version));
      case Field::other:
        return;
    }
  }

  void take_key(const char* what, std::string* text, const int64_t* integer) {
    Entry& entry = entries.back();
    if (key_->text != nullptr) {
      take_text(key_->name, entry.document.*key_->text, what, text);
    } else if (key_->integer != nullptr && std::string_view(what) == "null") {
      return;
    } else if (integer == nullptr) {
      throw bad(where() + std::string(key_->name) + " is " + what + ", expected an integer");
    } else if (key_->integer != nullptr) {
      entry.document.*key_->integer = *integer;
    } else if (*integer < 0) {
      throw bad(where() + std::string(key_->name) + " is negative");
    } else {
      entry.spans[key_->span].*key_->place = static_cast<uint64_t>(*integer);
    }
  }

  // null stands for nothing, where that is allowed.
  void take_text(std::string_view name, std::string& to, const char* what, std::string* text) {
    const bool required = in_docs_ && key_->required;
    if (text == nullptr && !required && std::string_view(what) == "null") return;
    if (text == nullptr) {
      throw bad(where() + std::string(name) + " is " + what + ", expected text");
    }
    to = std::move(*text);
  }

  const std::vector<Key> keys_;
  const std::string_view version_name_;
  int depth_ = 0;
  bool in_docs_ = false;
  Field field_ = Field::other;  // of the manifest
  const Key* key_ = nullptr;    // of a document; none: unknown
  uint32_t seen_fields_ = 0, seen_ = 0;
};

std::string_view text_at(Bytes region, const TextSpan& span, size_t document) {
  if (span.length > region.size() || span.offset > region.size() - span.length) {
    throw bad("document " + std::to_string(document) + ": text at " + std::to_string(span.offset) +
              " + " + std::to_string(span.length) + " ends outside the text region of " +
              std::to_string(region.size()) + " bytes");
  }
  const Bytes text = region.subspan(span.offset, span.length);
  if (!is_ascii(text) && !is_utf8(text)) {
    throw bad("document " + std::to_string(document) +
              ": its text is not UTF-8, or starts or ends within a character");
  }
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

// Texts that share bytes could make gigabytes out of a small payload.
void refuse_overlaps(const std::vector<Entry>& entries) {
  std::vector<TextSpan> spans;
  for (const Entry& entry : entries) {
    for (const TextSpan& span : entry.spans) {
      if (span.length > 0) spans.push_back(span);
    }
  }
  const auto by_offset = [](const TextSpan& a, const TextSpan& b) { return a.offset < b.offset; };
  if (!std::is_sorted(spans.begin(), spans.end(), by_offset)) {
    std::sort(spans.begin(), spans.end(), by_offset);
  }
  for (size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].offset - spans[i - 1].offset < spans[i - 1].length) {
      throw bad("two texts overlap at byte " + std::to_string(spans[i].offset) +
                " of the text region");
    }
  }
}

}  // namespace

std::optional<DocumentKind> document_kind(std::string_view payload_type) {
  if (payload_type == "clinical_text") return DocumentKind::text;
  if (payload_type == "clinical_text_pair") return DocumentKind::pair;
  return std::nullopt;
}

Bytes text_region(Bytes payload) { return frame_of(payload).region; }

PatientDocuments parse_documents(Bytes payload, DocumentKind kind) {
  const Frame frame = frame_of(payload);
  if (frame.manifest.size() > max_manifest_bytes) {
    throw bad("manifest of " + std::to_string(frame.manifest.size()) + " bytes, at most " +
              std::to_string(max_manifest_bytes) + " are read");
  }
  // The parser would pass over a byte order mark, and take a NUL for the end.
  if (frame.manifest.starts_with("\xEF\xBB\xBF") ||
      frame.manifest.find('\0') != std::string_view::npos) {
    throw bad("the manifest is not valid JSON: it has a byte order mark or a NUL");
  }
  ManifestReader manifest(kind);
  nlohmann::json::sax_parse(frame.manifest, &manifest);
  refuse_overlaps(manifest.entries);
  PatientDocuments patient = std::move(manifest.patient);
  patient.documents.reserve(manifest.entries.size());
  for (Entry& entry : manifest.entries) {
    const size_t number = patient.documents.size();
    entry.document.text = text_at(frame.region, entry.spans[0], number);
    entry.document.compressed_text = text_at(frame.region, entry.spans[1], number);
    patient.documents.push_back(std::move(entry.document));
  }
  return patient;
}

std::vector<PatientDocuments> parse_documents(std::span<const Bytes> payloads, DocumentKind kind,
                                              unsigned workers, Failures& failures) {
  std::vector<PatientDocuments> patients(payloads.size());
  parallel_for(payloads.size(), worker_count(workers, payloads.size()), [&](size_t i) {
    check_interrupt();
    try {
      patients[i] = parse_documents(payloads[i], kind);
    } catch (const Error& error) {
      failures.add(i, error);
    }
  });
  return patients;
}

std::vector<Bytes> payloads_of(const Batch& batch) {
  const auto* offsets = reinterpret_cast<const uint64_t*>(batch.offsets.data());
  std::vector<Bytes> payloads(batch.count);
  for (size_t i = 0; i < batch.count; ++i) {
    payloads[i] = batch.data.bytes().subspan(offsets[i], offsets[i + 1] - offsets[i]);
  }
  return payloads;
}

}  // namespace iac
