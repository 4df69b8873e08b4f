// Arrow columns as DuckDB vectors. The columns were validated when they were read, so nothing here
// checks bounds; what it throws are values that DuckDB's type cannot hold.
#pragma once

#include <iac/column.h>

#include <cstdint>
#include <span>
#include <vector>

#include "handles.h"

namespace iac::duckdb {

// The rows of a column that become a vector: neighbours, or any, where -1 is a NULL.
class Rows {
 public:
  Rows(int64_t first, size_t count) : first_(first), count_(count) {}
  explicit Rows(std::span<const int64_t> rows) : rows_(rows.data()), count_(rows.size()) {}

  size_t count() const { return count_; }
  bool contiguous() const { return rows_ == nullptr; }
  int64_t first() const { return first_; }  // of contiguous rows
  int64_t operator[](size_t i) const {
    return rows_ == nullptr ? first_ + static_cast<int64_t>(i) : rows_[i];
  }

 private:
  const int64_t* rows_ = nullptr;
  int64_t first_ = 0;
  size_t count_;
};

// How the values of an Arrow type become those of a DuckDB type.
struct ValueType {
  using Fill = void(const ValueType&, const ArrowArrayView&, const Rows&, duckdb_vector);

  LogicalType logical;
  Fill* fill = nullptr;  // writes the rows to the vector's slots from 0 on
  // A number is multiplied, then divided rounding down, to come to DuckDB's unit.
  int64_t factor = 1, divisor = 1;
  int64_t limit = 0;      // times: a day; decimals: digits; fixed sizes: the size
  bool required = false;  // NULL is an error: keys and entries of maps
  std::vector<ValueType> children;
};

inline bool is_null(const ArrowArrayView& view, int64_t row) {
  return row < 0 || ArrowArrayViewIsNull(&view, row);
}

// Writes which rows are NULL; whether any is.
bool fill_validity(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                   duckdb_vector vector);

ValueType::Fill fill_null;

// numbers.cpp
ValueType::Fill fill_8_bits, fill_16_bits, fill_32_bits, fill_64_bits, fill_bool, fill_half_float,
    fill_date64, fill_time32, fill_time64, fill_timestamp_tz, fill_duration, fill_interval_months,
    fill_interval_day_time, fill_interval_month_day_nano, fill_decimal32, fill_decimal64,
    fill_decimal128;

// strings.cpp
ValueType::Fill fill_string, fill_large_string, fill_string_view, fill_fixed_binary;

// nested.cpp
ValueType::Fill fill_list, fill_large_list, fill_list_view, fill_large_list_view,
    fill_fixed_list_as_list, fill_array, fill_struct, fill_union, fill_dictionary, fill_run_ends;

}  // namespace iac::duckdb
