#include "partitions.h"

#include <iac/error.h>
#include <iac/utf8.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include "strings.h"
#include "types.h"

namespace iac::duckdb {
namespace {

constexpr std::string_view null_value = "__HIVE_DEFAULT_PARTITION__";

// With %20 and its like written out.
std::string unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const bool is_escape = text[i] == '%' && i + 2 < text.size();
    const char* const digits = text.data() + i + 1;
    if (is_escape && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      plain += static_cast<char>(byte);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// The first value counts where a key stands twice.
std::map<std::string, std::string> parse(std::string_view path) {
  std::map<std::string, std::string> found;
  UniqueNames names;
  for (size_t slash; (slash = path.find('/')) != path.npos; path.remove_prefix(slash + 1)) {
    const std::string_view folder = path.substr(0, slash);
    const size_t equals = folder.find('=');
    if (equals == folder.npos || equals == 0 || folder.find('=', equals + 1) != folder.npos) {
      continue;
    }
    const std::string key(folder.substr(0, equals));
    if (names.add(key, 0) == key) found.emplace(key, unescape(folder.substr(equals + 1)));
  }
  return found;
}

std::optional<int64_t> integer(const std::string& text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [behind, failed] = std::from_chars(text.data(), end, value);
  return failed == std::errc() && behind == end ? std::optional(value) : std::nullopt;
}

std::optional<duckdb_date> date(const std::string& text) {
  const Value value(duckdb_create_varchar_length(text.data(), text.size()));
  const duckdb_date found = duckdb_get_date(value.get());
  const Value again(duckdb_create_date(found));
  return take_text(duckdb_get_varchar(again.get())) == text ? std::optional(found) : std::nullopt;
}

// DATE or BIGINT only for what DuckDB writes just like that, so that no text is lost.
duckdb_type detect(const std::string& text) {
  const auto number = integer(text);
  if (number && std::to_string(*number) == text) return DUCKDB_TYPE_BIGINT;
  return date(text) ? DUCKDB_TYPE_DATE : DUCKDB_TYPE_VARCHAR;
}

Error refused_types(const std::string& reason) {
  return {Error::Kind::argument, "hive_types: " + reason};
}

constexpr std::pair<std::string_view, duckdb_type> known_types[] = {
    {"varchar", DUCKDB_TYPE_VARCHAR}, {"bigint", DUCKDB_TYPE_BIGINT}, {"date", DUCKDB_TYPE_DATE}};

bool is_of_type(const std::string& text, duckdb_type type) {
  if (type == DUCKDB_TYPE_BIGINT) return integer(text).has_value();
  return type == DUCKDB_TYPE_VARCHAR || date(text).has_value();
}

}  // namespace

PartitionTypes read_partition_types(duckdb_value types) {
  const duckdb_logical_type type = duckdb_get_value_type(types);
  if (duckdb_get_type_id(type) != DUCKDB_TYPE_STRUCT) {
    throw refused_types("expected keys and their types, {'year': BIGINT}");
  }
  PartitionTypes asked;
  for (idx_t i = 0; i < duckdb_struct_type_child_count(type); ++i) {
    const std::string key = take_text(duckdb_struct_type_child_name(type, i));
    const Value value(duckdb_get_struct_child(types, i));
    std::string name;
    if (!duckdb_is_null_value(value.get())) {
      name = lower_case(take_text(duckdb_get_varchar(value.get())));
    }
    const auto* const found = std::find_if(std::begin(known_types), std::end(known_types),
                                           [&](const auto& known) { return known.first == name; });
    if (found == std::end(known_types)) {
      throw refused_types("the type of " + key +
                          " can be VARCHAR, BIGINT or DATE; cast it to others in the query");
    }
    asked.emplace(lower_case(key), found->second);
  }
  return asked;
}

Partitions find_partitions(const std::vector<PackFile>& files, const PartitionTypes& asked) {
  Partitions partitions;
  const auto first = parse(files.front().filename);
  for (const auto& [key, text] : first) partitions.keys.push_back(key);
  partitions.types.resize(first.size(), DUCKDB_TYPE_INVALID);
  for (const auto& [asked_key, type] : asked) {
    const auto found = std::find_if(
        first.begin(), first.end(),
        [&key = asked_key](const auto& partition) { return lower_case(partition.first) == key; });
    if (found == first.end()) throw refused_types("no folder is called " + asked_key + "=...");
    partitions.types[std::distance(first.begin(), found)] = type;
  }
  for (const PackFile& file : files) {
    const auto found = parse(file.filename);
    const bool same = std::equal(found.begin(), found.end(), first.begin(), first.end(),
                                 [](const auto& a, const auto& b) { return a.first == b.first; });
    if (!same) {
      throw Error(
          Error::Kind::argument,
          "hive_partitioning: its folders have other keys than those of " + files.front().filename)
          .in(file.filename);
    }
    auto& values = partitions.values.emplace_back();
    for (const auto& [key, text] : found) {
      if (!is_utf8(as_bytes(text.data(), text.size()))) {
        throw Error(Error::Kind::argument,
                    "hive_partitioning: the value of a partition is not UTF-8 text")
            .in(file.filename);
      }
      duckdb_type& type = partitions.types[values.size()];
      values.push_back(text == null_value ? std::nullopt : std::optional(text));
      if (!values.back() || type == DUCKDB_TYPE_VARCHAR) continue;
      if (asked.contains(lower_case(key))) {
        if (is_of_type(text, type)) continue;
        throw refused_types("the value of " + key + " is not of that type").in(file.filename);
      }
      const duckdb_type detected = detect(text);
      type = type == DUCKDB_TYPE_INVALID || type == detected ? detected : DUCKDB_TYPE_VARCHAR;
    }
  }
  std::replace(partitions.types.begin(), partitions.types.end(), DUCKDB_TYPE_INVALID,
               DUCKDB_TYPE_VARCHAR);
  return partitions;
}

void fill_partition(const std::optional<std::string>& text, duckdb_type type, size_t count,
                    duckdb_vector vector) {
  if (!text) {
    duckdb_vector_ensure_validity_writable(vector);
    uint64_t* mask = duckdb_vector_get_validity(vector);
    std::fill_n(mask, (count + 63) / 64, 0);
    if (type == DUCKDB_TYPE_VARCHAR) fill_text("", count, vector);
    return;
  }
  void* const out = duckdb_vector_get_data(vector);
  switch (type) {
    case DUCKDB_TYPE_BIGINT:
      return static_cast<void>(
          std::fill_n(static_cast<int64_t*>(out), count, integer(*text).value()));
    case DUCKDB_TYPE_DATE:
      return static_cast<void>(
          std::fill_n(static_cast<duckdb_date*>(out), count, date(*text).value()));
    default:
      return fill_text(*text, count, vector);
  }
}

}  // namespace iac::duckdb
