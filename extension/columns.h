// The columns of one pack: those of the index table with those of the slide and what DICOM headers
// tell, or of the slide table alone.
#pragma once

#include <iac/pack.h>

#include <string>
#include <vector>

#include "slides.h"
#include "types.h"

namespace iac::duckdb {

constexpr const char* record_name = "record";  // the reference's, whatever the tables hold

struct PackColumn {
  enum class Source {
    index,
    slides,
    patient_id,  // of DICOM headers, where neither table has it
    place,       // of tiles of a whole slide, see places.h; `position` is among these
  };
  Source source;
  size_t position = 0;  // in its table
  std::string name;     // unlike any other, and unlike record_name
  std::string arrow_type;

  // From add_types:
  ValueType type;
  nanoarrow::UniqueArrayView no_rows;  // for vectors of nothing but NULLs
  std::string problem;                 // why it cannot be read; the type stands in then
};

const Table& table_of(const Pack& pack, PackColumn::Source source);

// Of the rows of the index table. `layout`: with the columns that say where records are stored.
std::vector<PackColumn> index_columns(const Pack& pack, bool layout);

// Of the rows of the slide table.
std::vector<PackColumn> slide_columns(const Pack& pack);

// Finds the types that DuckDB has for the columns of a pack.
void add_types(const Pack& pack, std::vector<PackColumn>& columns);

// Equal for packs that are read alike.
std::string signature(const std::vector<PackColumn>& columns);

// Throws the error as one of the column of that name in the pack at `path`.
[[noreturn]] void rethrow_in(const Error& error, const std::string& column,
                             const std::string& path);

// Reads the wanted columns of one batch, several at once: by position in their table.
using Columns = std::vector<std::shared_ptr<const Column>>;
Columns read_columns(const Table& table, size_t batch, const std::vector<size_t>& wanted);

}  // namespace iac::duckdb
