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

// Whether a scan planned for some columns can read a pack that has these.
bool same_columns(const std::vector<ScanColumn>& a, const std::vector<ScanColumn>& b);

}  // namespace iac::duckdb
