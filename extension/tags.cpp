// iac_tags(record) -> JSON: the header of a DICOM instance, an object of its elements by tag.
// iac_tag(record, tag) -> VARCHAR: the value of one element; NULL where it is missing or empty.
#include <iac/dicom/dictionary.h>
#include <iac/dicom/value.h>
#include <iac/error.h>

#include <string>
#include <vector>

#include "functions.h"
#include "nulls.h"
#include "resolve.h"
#include "strings.h"

namespace iac::duckdb {
namespace {

// DuckDB's JSON is a VARCHAR of that alias.
LogicalType json_type() {
  LogicalType type = logical_type(DUCKDB_TYPE_VARCHAR);
  duckdb_logical_type_set_alias(type.get(), "JSON");
  return type;
}

// A header is put together where the caches are, and copied to the vector once.
void write_tags(const Records& records, duckdb_vector out) {
  const auto headers = records.read_headers();
  std::vector<char> text;
  for (size_t i = 0; i < headers.size(); ++i) {
    const size_t size = headers[i].header->json_size();
    records.count(size);
    if (size > text.size()) text.resize(size);
    headers[i].header->write_json(text.data());
    duckdb_unsafe_vector_assign_string_element_len(out, records.slots[i], text.data(),
                                                   checked_length(size));
  }
}

void write_tag(const Records& records, duckdb_vector out) {
  const auto headers = records.read_headers();
  std::vector<uint64_t> places{0};
  std::vector<idx_t> missing;
  std::string values;
  std::string_view last;
  uint32_t tag = 0;
  for (size_t i = 0; i < headers.size(); ++i) {
    const std::string_view text = records.texts[records.slots[i]];
    if (i == 0 || text != last) tag = dicom::parse_tag(last = text);
    try {
      const auto element = headers[i].header->find(tag);
      const auto value = element ? dicom::value_text(*element) : std::nullopt;
      if (value) {
        records.count(value->size());
        values += *value;
      } else {
        missing.push_back(records.slots[i]);
      }
    } catch (Error& error) {
      throw std::move(error).at(records.rows[i]);
    }
    places.push_back(values.size());
  }
  write_strings(out, values.data(), values.size(), places.data(), headers.size(),
                [&](size_t i) { return records.slots[i]; });
  set_nulls(missing, out);
}

}  // namespace

void register_tags(duckdb_connection connection) {
  static constexpr Resolver tags{
      .name = "iac_tags", .result = json_type, .write = write_tags, .reads_payloads = false};
  static constexpr Resolver tag{.name = "iac_tag",
                                .result = [] { return logical_type(DUCKDB_TYPE_VARCHAR); },
                                .write = write_tag,
                                .takes_text = true,
                                .reads_payloads = false};
  register_resolver(connection, tags);
  register_resolver(connection, tag);
}

}  // namespace iac::duckdb
