// The slide table of a COPY: a row for each slide that its records are of.
#pragma once

#include <unordered_map>

#include "copy_table.h"

namespace iac::duckdb {

class SlideBuilder {
 public:
  explicit SlideBuilder(const CopyPlan& plan) : plan_(plan), table_(plan.slides) {}

  // Adds the slides of a chunk whose rows are first_row, first_row + 1 ... of the pack. Throws
  // Error when two slides would have one number.
  void add(duckdb_data_chunk chunk, size_t count, int64_t first_row);

  int64_t num_slides() const { return table_.num_rows(); }
  // The slide of each record, where slides are numbered here.
  const std::vector<uint32_t>& slide_of_record() const { return slide_of_record_; }

  nanoarrow::UniqueBuffer finish();

 private:
  const CopyPlan& plan_;
  TableBuilder table_;
  // Numbered here: the number of each combination of values. Else the values of each number.
  std::unordered_map<std::string, uint32_t> numbers_;
  std::unordered_map<std::string, std::string> values_;
  std::vector<uint32_t> slide_of_record_;
};

}  // namespace iac::duckdb
