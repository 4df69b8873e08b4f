// Values without children as Arrow arrays. The memory of a NULL is zero, so that files depend on
// values alone.
#include <iac/error.h>

#include <cstdio>
#include <string>

#include "copy_types.h"
#include "values.h"

namespace iac::duckdb {
namespace {

using Wide = __int128;
using UnsignedWide = unsigned __int128;

struct MonthDayNano {
  int32_t months;
  int32_t days;
  int64_t nanoseconds;
};

constexpr int64_t seconds_a_day = 86'400;

bool is_null_at(const uint64_t* mask, int64_t row) {
  return row < 0 || !is_valid(mask, static_cast<size_t>(row));
}

// Adds convert(value) of each row that is no NULL.
template <class In, class Out, class Convert>
void append_converted(duckdb_vector vector, const Rows& rows, ArrowArray& out, Convert convert) {
  append_validity(vector, rows, out);
  const uint64_t* mask = duckdb_vector_get_validity(vector);
  const auto* in = static_cast<const In*>(duckdb_vector_get_data(vector));
  ArrowBuffer* buffer = ArrowArrayBuffer(&out, 1);
  require(ArrowBufferReserve(buffer, static_cast<int64_t>(rows.count() * sizeof(Out))));
  for (size_t i = 0; i < rows.count(); ++i) {
    const int64_t row = rows[i];
    const Out value = is_null_at(mask, row) ? Out{} : convert(in[row]);
    ArrowBufferAppendUnsafe(buffer, &value, sizeof value);
  }
}

template <class T>
void append_fixed(duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  if (rows.contiguous() && duckdb_vector_get_validity(vector) == nullptr) {
    append_validity(vector, rows, out);
    const auto* in = static_cast<const T*>(duckdb_vector_get_data(vector));
    return require(ArrowBufferAppend(ArrowArrayBuffer(&out, 1), in + rows.first(),
                                     static_cast<int64_t>(rows.count() * sizeof(T))));
  }
  append_converted<T, T>(vector, rows, out, [](T value) { return value; });
}

// A decimal of 38 digits at most.
template <class T>
Wide checked_wide(T value, const char* type) {
  constexpr UnsignedWide bound = static_cast<UnsignedWide>(10'000'000'000'000'000'000ULL) *
                                 10'000'000'000'000'000'000ULL;  // 10^38
  const auto magnitude =
      value < 0 ? -static_cast<UnsignedWide>(value) : static_cast<UnsignedWide>(value);
  if (magnitude < bound) return static_cast<Wide>(value);
  throw Error(Error::Kind::argument,
              std::string("a ") + type + " has more than the 38 digits that a pack can hold");
}

Wide wide(const duckdb_hugeint& value) {
  return static_cast<Wide>(static_cast<UnsignedWide>(value.upper) << 64 | value.lower);
}

void append_day_time(duckdb_vector vector, const Rows& rows, ArrowArray& out, int64_t units) {
  append_converted<int64_t, int64_t>(vector, rows, out, [&](int64_t time) {
    if (time >= 0 && time < seconds_a_day * units) return time;
    throw Error(Error::Kind::argument, "a time is not below 24:00:00, which a pack cannot hold");
  });
}

// Adds text(row) for each row that is no NULL.
template <class Text>
void append_texts(duckdb_vector vector, const Rows& rows, ArrowArray& out, Text text) {
  append_validity(vector, rows, out);
  const uint64_t* mask = duckdb_vector_get_validity(vector);
  ArrowBuffer* offsets = ArrowArrayBuffer(&out, 1);
  ArrowBuffer* data = ArrowArrayBuffer(&out, 2);
  require(ArrowBufferReserve(offsets, static_cast<int64_t>(rows.count() * sizeof(int32_t))));
  for (size_t i = 0; i < rows.count(); ++i) {
    const int64_t row = rows[i];
    if (!is_null_at(mask, row)) {
      const std::string_view value = text(row);
      if (data->size_bytes + static_cast<int64_t>(value.size()) > INT32_MAX) {
        throw Error(Error::Kind::argument,
                    "the values of neighbouring rows take more than 2 GiB: large ones belong into "
                    "the payload");
      }
      require(ArrowBufferAppend(data, value.data(), static_cast<int64_t>(value.size())));
    }
    const auto end = static_cast<int32_t>(data->size_bytes);
    ArrowBufferAppendUnsafe(offsets, &end, sizeof end);
  }
}

size_t enum_index(const void* data, size_t width, int64_t row) {
  switch (width) {
    case 1:
      return static_cast<const uint8_t*>(data)[row];
    case 2:
      return static_cast<const uint16_t*>(data)[row];
    default:
      return static_cast<const uint32_t*>(data)[row];
  }
}

}  // namespace

bool append_validity(duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  const uint64_t* mask = duckdb_vector_get_validity(vector);
  int64_t nulls = 0;
  if (mask != nullptr || !rows.contiguous()) {
    for (size_t i = 0; i < rows.count(); ++i) nulls += is_null_at(mask, rows[i]) ? 1 : 0;
  }
  ArrowBitmap* bitmap = ArrowArrayValidityBitmap(&out);
  if (nulls > 0 && bitmap->size_bits == 0 && out.length > 0) {
    require(ArrowBitmapAppend(bitmap, 1, out.length));
  }
  if (nulls > 0 || bitmap->size_bits > 0) {
    require(ArrowBitmapReserve(bitmap, static_cast<int64_t>(rows.count())));
    for (size_t i = 0; i < rows.count(); ++i) {
      ArrowBitmapAppendUnsafe(bitmap, is_null_at(mask, rows[i]) ? 0 : 1, 1);
    }
  }
  out.null_count += nulls;
  out.length += static_cast<int64_t>(rows.count());
  return nulls > 0;
}

void append_null(const StoredType&, duckdb_vector, const Rows& rows, ArrowArray& out) {
  require(ArrowArrayAppendNull(&out, static_cast<int64_t>(rows.count())));
}

void append_bool(const StoredType&, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  const uint64_t* mask = duckdb_vector_get_validity(vector);
  const auto* in = static_cast<const uint8_t*>(duckdb_vector_get_data(vector));
  for (size_t i = 0; i < rows.count(); ++i) {
    const int64_t row = rows[i];
    require(is_null_at(mask, row) ? ArrowArrayAppendNull(&out, 1)
                                  : ArrowArrayAppendInt(&out, in[row] != 0 ? 1 : 0));
  }
}

void append_8_bits(const StoredType&, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  append_fixed<uint8_t>(vector, rows, out);
}

void append_16_bits(const StoredType&, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  append_fixed<uint16_t>(vector, rows, out);
}

void append_32_bits(const StoredType&, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  append_fixed<uint32_t>(vector, rows, out);
}

void append_64_bits(const StoredType&, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  append_fixed<uint64_t>(vector, rows, out);
}

void append_time(const StoredType&, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  append_day_time(vector, rows, out, 1'000'000);
}

void append_time_ns(const StoredType&, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  append_day_time(vector, rows, out, 1'000'000'000);
}

void append_interval(const StoredType&, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  append_converted<duckdb_interval, MonthDayNano>(
      vector, rows, out, [](const duckdb_interval& value) {
        int64_t nanoseconds;
        if (__builtin_mul_overflow(value.micros, int64_t{1000}, &nanoseconds)) {
          throw Error(Error::Kind::argument,
                      "an interval has more than the 292 years of microseconds that a pack can "
                      "hold");
        }
        return MonthDayNano{value.months, value.days, nanoseconds};
      });
}

void append_hugeint(const StoredType&, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  append_converted<duckdb_hugeint, Wide>(vector, rows, out, [](const duckdb_hugeint& value) {
    return checked_wide(wide(value), "HUGEINT");
  });
}

void append_uhugeint(const StoredType&, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  append_converted<duckdb_uhugeint, Wide>(vector, rows, out, [](const duckdb_uhugeint& value) {
    return checked_wide(static_cast<UnsignedWide>(value.upper) << 64 | value.lower, "UHUGEINT");
  });
}

void append_decimal(const StoredType& type, duckdb_vector vector, const Rows& rows,
                    ArrowArray& out) {
  const auto widened = [](auto value) { return static_cast<Wide>(value); };
  switch (type.width) {
    case 2:
      return append_converted<int16_t, Wide>(vector, rows, out, widened);
    case 4:
      return append_converted<int32_t, Wide>(vector, rows, out, widened);
    case 8:
      return append_converted<int64_t, Wide>(vector, rows, out, widened);
    default:
      return append_converted<duckdb_hugeint, Wide>(vector, rows, out, wide);
  }
}

// DuckDB has a UUID as a HUGEINT whose first bit is turned, so that it sorts.
void append_uuid(const StoredType&, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  const auto* in = static_cast<const duckdb_hugeint*>(duckdb_vector_get_data(vector));
  char text[37];
  append_texts(vector, rows, out, [&](int64_t row) {
    const auto upper = static_cast<uint64_t>(in[row].upper) ^ uint64_t { 1 } << 63;
    const uint64_t lower = in[row].lower;
    std::snprintf(text, sizeof text, "%08x-%04x-%04x-%04x-%012llx",
                  static_cast<unsigned>(upper >> 32), static_cast<unsigned>(upper >> 16 & 0xffff),
                  static_cast<unsigned>(upper & 0xffff), static_cast<unsigned>(lower >> 48),
                  static_cast<unsigned long long>(lower & 0xffff'ffff'ffff));
    return std::string_view(text, 36);
  });
}

void append_string(const StoredType&, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  const duckdb_string_t* in = strings_of(vector);
  append_texts(vector, rows, out, [&](int64_t row) { return text_of(in[row]); });
}

void append_enum(const StoredType& type, duckdb_vector vector, const Rows& rows, ArrowArray& out) {
  const void* in = duckdb_vector_get_data(vector);
  append_texts(vector, rows, out, [&](int64_t row) {
    return std::string_view(type.texts[enum_index(in, type.width, row)]);
  });
}

}  // namespace iac::duckdb
