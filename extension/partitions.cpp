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
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::to_string(value) == text ? std::optional(value) : std::nullopt;
}

std::optional<duckdb_date> date(const std::string& text) {
  const Value value(duckdb_create_varchar_length(text.data(), text.size()));
  const duckdb_date found = duckdb_get_date(value.get());
  const Value again(duckdb_create_date(found));
  return take_text(duckdb_get_varchar(again.get())) == text ? std::optional(found) : std::nullopt;
}

// DATE or BIGINT only for what DuckDB writes just like that, so that no text is lost.
duckdb_type detect(const std::string& text) {
  if (integer(text)) return DUCKDB_TYPE_BIGINT;
  return date(text) ? DUCKDB_TYPE_DATE : DUCKDB_TYPE_VARCHAR;
}

}  // namespace

Partitions find_partitions(const std::vector<PackFile>& files) {
  Partitions partitions;
  const auto first = parse(files.front().filename);
  for (const auto& [key, text] : first) partitions.keys.push_back(key);
  partitions.types.resize(first.size(), DUCKDB_TYPE_INVALID);
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
