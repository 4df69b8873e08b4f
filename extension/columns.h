// The columns of a scan: the index table's, then the slide table's, then the record reference.
#pragma once

#include <iac/pack.h>

#include <optional>
#include <string>
#include <vector>

#include "slides.h"
#include "types.h"

namespace iac::duckdb {

struct ScanColumn {
  enum class Source { index, slides, record };
  Source source;
  size_t position = 0;  // in its table
  std::string name;
  std::string arrow_type;
  ValueType type;
  std::string problem;  // why it cannot be read; the type stands in then
};

// `layout`: with the columns that say where records are stored.
std::vector<ScanColumn> scan_columns(const Pack& pack, bool layout);

// The columns of the slide table alone.
std::vector<ScanColumn> slide_columns(const Pack& pack);

// Whether a scan planned for some columns can read a pack that has these.
bool same_columns(const std::vector<ScanColumn>& a, const std::vector<ScanColumn>& b);

// Throws the column's problem, where it has one, as an error of the pack at `path`.
void require_readable(const ScanColumn& column, const std::string& path);

// Throws the error as one of that column of the pack at `path`.
[[noreturn]] void rethrow_in(const Error& error, const ScanColumn& column, const std::string& path);

// Reads the wanted columns of one batch, several at once: by position in their table.
using Columns = std::vector<std::shared_ptr<const Column>>;
Columns read_columns(const Table& table, size_t batch, const std::vector<size_t>& wanted);

}  // namespace iac::duckdb
