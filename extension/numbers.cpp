// Types of fixed width: numbers, dates, times, intervals, decimals.
#include <iac/error.h>

#include <algorithm>
#include <string>
#include <type_traits>

#include "half_float.h"
#include "vectors.h"

namespace iac::duckdb {
namespace {

using Wide = __int128;

struct Int128 {  // as Arrow and DuckDB store it
  uint64_t lower;
  int64_t upper;
  Wide value() const { return static_cast<Wide>(upper) * (Wide{1} << 64) + lower; }
};

struct DayTime {
  int32_t days;
  int32_t milliseconds;
};

struct MonthDayNano {
  int32_t months;
  int32_t days;
  int64_t nanoseconds;
};

Error out_of_range(int64_t value, const char* type) {
  return {Error::Kind::pack,
          "value " + std::to_string(value) + " is outside the range of DuckDB's " + type};
}

template <class In, class Out, class Convert>
void fill_converted(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                    duckdb_vector vector, Convert convert) {
  fill_validity(type, view, rows, vector);
  const auto* in = static_cast<const In*>(view.buffer_views[1].data.data);
  auto* out = static_cast<Out*>(duckdb_vector_get_data(vector));
  for (size_t i = 0; i < rows.count(); ++i) {
    const int64_t row = rows[i];
    out[i] = is_null(view, row) ? Out{} : static_cast<Out>(convert(in[row]));
  }
}

int64_t divide_down(int64_t value, int64_t divisor) {
  return value / divisor - (value % divisor < 0 ? 1 : 0);
}

int64_t scale(const ValueType& type, int64_t value, const char* name) {
  int64_t scaled;
  if (__builtin_mul_overflow(value, type.factor, &scaled)) throw out_of_range(value, name);
  return type.divisor == 1 ? scaled : divide_down(scaled, type.divisor);
}

// DuckDB formats hours with two digits, so a time must be within the day.
template <class In>
void fill_time(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
               duckdb_vector vector) {
  fill_converted<In, int64_t>(type, view, rows, vector, [&](In value) {
    if (value < 0 || value > type.limit) throw out_of_range(value, "TIME");
    return value * type.factor;
  });
}

// A value of more digits than the type has would be read as another value.
template <class In, class Out>
void fill_decimal_as(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                     duckdb_vector vector) {
  Wide bound = 1;
  for (int64_t i = 0; i < type.limit; ++i) bound *= 10;
  fill_converted<In, Out>(type, view, rows, vector, [&](In stored) {
    Wide value;
    if constexpr (std::is_same_v<In, Int128>) {
      value = stored.value();
    } else {
      value = stored;
    }
    if (value >= bound || value <= -bound) {
      throw Error(Error::Kind::pack, "a decimal has more than the " + std::to_string(type.limit) +
                                         " digits of its type");
    }
    if constexpr (std::is_same_v<Out, Int128>) {
      return Int128{static_cast<uint64_t>(value), static_cast<int64_t>(value >> 64)};
    } else {
      return static_cast<Out>(value);
    }
  });
}

template <class In>
void fill_decimal(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                  duckdb_vector vector) {
  if (type.limit <= 4) return fill_decimal_as<In, int16_t>(type, view, rows, vector);
  if (type.limit <= 9) return fill_decimal_as<In, int32_t>(type, view, rows, vector);
  if (type.limit <= 18) return fill_decimal_as<In, int64_t>(type, view, rows, vector);
  return fill_decimal_as<In, Int128>(type, view, rows, vector);
}

template <class T>
void fill_fixed(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                duckdb_vector vector) {
  fill_validity(type, view, rows, vector);
  const auto* in = static_cast<const T*>(view.buffer_views[1].data.data);
  auto* out = static_cast<T*>(duckdb_vector_get_data(vector));
  if (rows.contiguous()) {
    std::copy_n(in + rows.first(), rows.count(), out);
    return;
  }
  for (size_t i = 0; i < rows.count(); ++i) out[i] = rows[i] < 0 ? 0 : in[rows[i]];
}

}  // namespace

void fill_8_bits(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                 duckdb_vector vector) {
  fill_fixed<uint8_t>(type, view, rows, vector);
}

void fill_16_bits(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                  duckdb_vector vector) {
  fill_fixed<uint16_t>(type, view, rows, vector);
}

void fill_32_bits(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                  duckdb_vector vector) {
  fill_fixed<uint32_t>(type, view, rows, vector);
}

void fill_64_bits(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                  duckdb_vector vector) {
  fill_fixed<uint64_t>(type, view, rows, vector);
}

void fill_bool(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
               duckdb_vector vector) {
  fill_validity(type, view, rows, vector);
  const uint8_t* in = view.buffer_views[1].data.as_uint8;
  auto* out = static_cast<uint8_t*>(duckdb_vector_get_data(vector));
  for (size_t i = 0; i < rows.count(); ++i) {
    out[i] = rows[i] < 0 ? 0 : static_cast<uint8_t>(ArrowBitGet(in, rows[i]));
  }
}

void fill_half_float(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                     duckdb_vector vector) {
  fill_converted<uint16_t, float>(type, view, rows, vector, widen);
}

void fill_date64(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                 duckdb_vector vector) {
  constexpr int64_t day = 86'400'000;
  fill_converted<int64_t, int32_t>(type, view, rows, vector, [](int64_t milliseconds) {
    const int64_t days = divide_down(milliseconds, day);
    if (days != static_cast<int32_t>(days)) throw out_of_range(milliseconds, "DATE");
    return days;
  });
}

void fill_time32(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                 duckdb_vector vector) {
  fill_time<int32_t>(type, view, rows, vector);
}

void fill_time64(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                 duckdb_vector vector) {
  fill_time<int64_t>(type, view, rows, vector);
}

void fill_timestamp_tz(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                       duckdb_vector vector) {
  fill_converted<int64_t, int64_t>(type, view, rows, vector, [&](int64_t value) {
    return scale(type, value, "TIMESTAMP WITH TIME ZONE");
  });
}

void fill_duration(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                   duckdb_vector vector) {
  fill_converted<int64_t, duckdb_interval>(type, view, rows, vector, [&](int64_t value) {
    return duckdb_interval{0, 0, scale(type, value, "INTERVAL")};
  });
}

void fill_interval_months(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                          duckdb_vector vector) {
  fill_converted<int32_t, duckdb_interval>(
      type, view, rows, vector, [](int32_t months) { return duckdb_interval{months, 0, 0}; });
}

void fill_interval_day_time(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                            duckdb_vector vector) {
  fill_converted<DayTime, duckdb_interval>(type, view, rows, vector, [](DayTime value) {
    return duckdb_interval{0, value.days, int64_t{value.milliseconds} * 1000};
  });
}

void fill_interval_month_day_nano(const ValueType& type, const ArrowArrayView& view,
                                  const Rows& rows, duckdb_vector vector) {
  fill_converted<MonthDayNano, duckdb_interval>(type, view, rows, vector, [](MonthDayNano value) {
    return duckdb_interval{value.months, value.days, divide_down(value.nanoseconds, 1000)};
  });
}

void fill_decimal32(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                    duckdb_vector vector) {
  fill_decimal<int32_t>(type, view, rows, vector);
}

void fill_decimal64(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                    duckdb_vector vector) {
  fill_decimal<int64_t>(type, view, rows, vector);
}

void fill_decimal128(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                     duckdb_vector vector) {
  fill_decimal<Int128>(type, view, rows, vector);
}

}  // namespace iac::duckdb
