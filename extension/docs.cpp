// iac_docs(record) and iac_doc_pairs(record) -> STRUCT(...)[]: the documents of a patient, in the
// order they are stored in.
#include <iac/documents.h>
#include <iac/error.h>

#include <vector>

#include "functions.h"
#include "resolve.h"
#include "strings.h"

namespace iac::duckdb {
namespace {

// A field of the result; one without a text is the episode index.
struct Field {
  const char* name;
  std::string_view (*text)(const Document&);
  bool in_payload = false;  // the text is a part of the payload
};

template <auto member>
std::string_view text_of_document(const Document& document) {
  return document.*member;
}

constexpr Field episode_field{"episode_index", nullptr};

template <DocumentKind kind>
std::vector<Field> fields() {
  std::vector<Field> fields{
      {"doc_id", text_of_document<&Document::doc_id>},
      {"doc_type", text_of_document<&Document::doc_type>},
      {"doc_category", text_of_document<&Document::doc_category>},
      {"doc_timestamp", text_of_document<&Document::doc_timestamp>},
      {"encounter", text_of_document<&Document::encounter>},
      episode_field,
      {"source", text_of_document<&Document::source>},
  };
  if constexpr (kind == DocumentKind::text) {
    fields.push_back({"text", text_of_document<&Document::text>, true});
  } else {
    fields.push_back({"source_text", text_of_document<&Document::text>, true});
    fields.push_back({"compressed_text", text_of_document<&Document::compressed_text>, true});
  }
  return fields;
}

template <DocumentKind kind>
LogicalType docs_type() {
  const LogicalType text = logical_type(DUCKDB_TYPE_VARCHAR);
  const LogicalType integer = logical_type(DUCKDB_TYPE_INTEGER);
  std::vector<duckdb_logical_type> types;
  std::vector<const char*> names;
  for (const Field& field : fields<kind>()) {
    names.push_back(field.name);
    types.push_back(field.text != nullptr ? text.get() : integer.get());
  }
  const LogicalType document(duckdb_create_struct_type(types.data(), names.data(), types.size()));
  return LogicalType(duckdb_create_list_type(document.get()));
}

void require_kind(const Pack& pack, DocumentKind wanted) {
  const auto kind = document_kind(pack.header().payload_type);
  if (kind == wanted && pack.layout().kind() == Layout::Kind::variable) return;
  const bool other_function = kind.has_value() && kind != wanted;
  throw Error(Error::Kind::argument,
              std::string("its records are not ") +
                  (wanted == DocumentKind::text ? "documents" : "pairs of documents") +
                  ", its payload type is '" + pack.header().payload_type + "'" +
                  (!other_function                ? ""
                   : wanted == DocumentKind::text ? ", use iac_doc_pairs"
                                                  : ", use iac_docs"));
}

// A document, and the row that it is of.
struct Item {
  const Document* document;
  int64_t row;
};

void write_episodes(const std::vector<Item>& items, idx_t first, duckdb_vector out) {
  auto* const episodes = static_cast<int32_t*>(duckdb_vector_get_data(out)) + first;
  duckdb_vector_ensure_validity_writable(out);
  uint64_t* const validity = duckdb_vector_get_validity(out);
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t episode = items[i].document->episode_index;
    if (episode < INT32_MIN || episode > INT32_MAX) {
      throw Error(Error::Kind::codec, "INTEGER cannot hold an episode_index of it")
          .at(items[i].row);
    }
    episodes[i] = static_cast<int32_t>(episode);
    duckdb_validity_set_row_validity(validity, first + i, episode != -1);
  }
}

template <DocumentKind kind>
void write_docs(const Records& records, duckdb_vector out) {
  require_kind(records.pack, kind);
  const Batch batch = records.read(true);
  Failures failures(records.pack.path(), records.rows);
  const std::vector<PatientDocuments> patients =
      parse_documents(payloads_of(batch), kind, records.settings.options().workers, failures);
  failures.finish(OnError::raise, {}, {});

  std::vector<Item> items;
  for (size_t i = 0; i < patients.size(); ++i) {
    for (const Document& document : patients[i].documents) {
      items.push_back({&document, records.rows[i]});
    }
  }
  const std::vector<Field> columns = fields<kind>();
  records.count(items.size() * columns.size() * sizeof(duckdb_string_t));

  const idx_t first = duckdb_list_vector_get_size(out);
  const idx_t size = first + items.size();
  if (duckdb_list_vector_reserve(out, size) != DuckDBSuccess ||
      duckdb_list_vector_set_size(out, size) != DuckDBSuccess) {
    throw std::bad_alloc();
  }
  auto* const entries = static_cast<duckdb_list_entry*>(duckdb_vector_get_data(out));
  idx_t next = first;
  for (size_t i = 0; i < patients.size(); ++i) {
    entries[records.slots[i]] = {next, patients[i].documents.size()};
    next += patients[i].documents.size();
  }
  const duckdb_vector documents = duckdb_list_vector_get_child(out);
  const std::string_view payloads(reinterpret_cast<const char*>(batch.data.data()),
                                  batch.data.size());
  const auto slot = [&](size_t i) { return first + i; };
  for (idx_t c = 0; c < columns.size(); ++c) {
    const duckdb_vector column = duckdb_struct_vector_get_child(documents, c);
    const auto text = [&](size_t i) { return columns[c].text(*items[i].document); };
    if (columns[c].text == nullptr) {
      write_episodes(items, first, column);
    } else if (columns[c].in_payload) {
      write_strings_within(column, payloads, items.size(), text, slot);
    } else {
      write_scattered_strings(column, items.size(), text, slot);
    }
  }
}

}  // namespace

void register_docs(duckdb_connection connection) {
  static constexpr Resolver docs{.name = "iac_docs",
                                 .result = docs_type<DocumentKind::text>,
                                 .write = write_docs<DocumentKind::text>};
  static constexpr Resolver pairs{.name = "iac_doc_pairs",
                                  .result = docs_type<DocumentKind::pair>,
                                  .write = write_docs<DocumentKind::pair>};
  register_resolver(connection, docs);
  register_resolver(connection, pairs);
}

}  // namespace iac::duckdb
