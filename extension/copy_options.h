// The options of COPY ... TO (FORMAT iac).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "handles.h"

namespace iac::duckdb {

struct CopyOptions {
  std::optional<std::string> codec;
  std::string codec_params = "{}";  // all options that are no others, by the codec's own names
  std::optional<std::string> payload_type;
  std::optional<std::vector<std::string>> columns;
  std::optional<std::vector<std::string>> slide_columns;

  bool has_codec_params() const { return codec_params != "{}"; }

  // `options` is the struct that DuckDB gives, its names in upper case, or a NULL. Throws Error.
  static CopyOptions read(duckdb_value options);
};

}  // namespace iac::duckdb
