#include "widening.h"

#include <iac/error.h>

#include <algorithm>
#include <limits>

#include "types.h"

namespace iac::duckdb {
namespace {

bool is_float(duckdb_type type) { return type == DUCKDB_TYPE_FLOAT || type == DUCKDB_TYPE_DOUBLE; }

// Bits, and whether there is a sign; 0 for what is no integer.
struct Integer {
  int bits = 0;
  bool is_signed = false;
};

Integer integer(duckdb_type type) {
  switch (type) {
    case DUCKDB_TYPE_BOOLEAN:
      return {1, false};
    case DUCKDB_TYPE_TINYINT:
      return {8, true};
    case DUCKDB_TYPE_SMALLINT:
      return {16, true};
    case DUCKDB_TYPE_INTEGER:
      return {32, true};
    case DUCKDB_TYPE_BIGINT:
      return {64, true};
    case DUCKDB_TYPE_HUGEINT:
      return {128, true};
    case DUCKDB_TYPE_UTINYINT:
      return {8, false};
    case DUCKDB_TYPE_USMALLINT:
      return {16, false};
    case DUCKDB_TYPE_UINTEGER:
      return {32, false};
    case DUCKDB_TYPE_UBIGINT:
      return {64, false};
    default:
      return {};
  }
}

duckdb_type common_integer(duckdb_type a, duckdb_type b) {
  const Integer x = integer(a), y = integer(b);
  if (x.is_signed == y.is_signed) return x.bits > y.bits ? a : b;
  const Integer with_sign = x.is_signed ? x : y, without = x.is_signed ? y : x;
  for (const duckdb_type type :
       {DUCKDB_TYPE_TINYINT, DUCKDB_TYPE_SMALLINT, DUCKDB_TYPE_INTEGER, DUCKDB_TYPE_BIGINT}) {
    const int bits = integer(type).bits;
    if (bits >= with_sign.bits && bits > without.bits) return type;
  }
  return DUCKDB_TYPE_HUGEINT;
}

constexpr duckdb_type moments[] = {DUCKDB_TYPE_DATE, DUCKDB_TYPE_TIMESTAMP_S,
                                   DUCKDB_TYPE_TIMESTAMP_MS, DUCKDB_TYPE_TIMESTAMP,
                                   DUCKDB_TYPE_TIMESTAMP_NS};

const duckdb_type* find_moment(duckdb_type type) {
  return std::find(std::begin(moments), std::end(moments), type);
}

bool is_number(duckdb_type type) { return integer(type).bits > 0 || is_float(type); }
bool is_moment(duckdb_type type) { return find_moment(type) != std::end(moments); }

std::optional<duckdb_type> common_type(duckdb_type a, duckdb_type b) {
  if (b == DUCKDB_TYPE_VARCHAR) std::swap(a, b);
  if (a == DUCKDB_TYPE_VARCHAR) {
    return b == a || is_number(b) || is_moment(b) ? std::optional(a) : std::nullopt;
  }
  if (is_moment(a) && is_moment(b)) return *std::max(find_moment(a), find_moment(b));
  if (!is_number(a) || !is_number(b)) return std::nullopt;
  if (a == DUCKDB_TYPE_DOUBLE || b == DUCKDB_TYPE_DOUBLE) return DUCKDB_TYPE_DOUBLE;
  if (a == DUCKDB_TYPE_FLOAT || b == DUCKDB_TYPE_FLOAT) return DUCKDB_TYPE_FLOAT;
  return common_integer(a, b);
}

// Calls `body` with a value of the type that a vector of a number holds.
template <class Body>
void with_number(duckdb_type type, Body body) {
  switch (type) {
    case DUCKDB_TYPE_BOOLEAN:
    case DUCKDB_TYPE_UTINYINT:
      return body(uint8_t{});
    case DUCKDB_TYPE_TINYINT:
      return body(int8_t{});
    case DUCKDB_TYPE_SMALLINT:
      return body(int16_t{});
    case DUCKDB_TYPE_USMALLINT:
      return body(uint16_t{});
    case DUCKDB_TYPE_INTEGER:
      return body(int32_t{});
    case DUCKDB_TYPE_UINTEGER:
      return body(uint32_t{});
    case DUCKDB_TYPE_BIGINT:
      return body(int64_t{});
    case DUCKDB_TYPE_UBIGINT:
      return body(uint64_t{});
    case DUCKDB_TYPE_FLOAT:
      return body(float{});
    case DUCKDB_TYPE_DOUBLE:
      return body(double{});
    default:
      return body(duckdb_hugeint{});
  }
}

template <class Out, class In>
Out convert(In value) {
  if constexpr (std::is_same_v<Out, duckdb_hugeint>) {
    return {static_cast<uint64_t>(value), value < 0 ? -1 : 0};
  } else {
    return static_cast<Out>(value);
  }
}

struct Slots {
  const void* in;
  void* out;
  const uint64_t* mask;
  size_t count;

  bool is_valid(size_t i) const { return mask == nullptr || (mask[i / 64] >> (i % 64) & 1) != 0; }

  template <class In, class Out, class Convert>
  void convert(Convert body) const {
    for (size_t i = 0; i < count; ++i) {
      static_cast<Out*>(out)[i] = is_valid(i) ? body(static_cast<const In*>(in)[i]) : Out{};
    }
  }
};

void widen_numbers(duckdb_type from, duckdb_type to, const Slots& slots) {
  with_number(from, [&](auto in) {
    using In = decltype(in);
    with_number(to, [&](auto out) {
      using Out = decltype(out);
      if constexpr (!std::is_same_v<In, duckdb_hugeint>) {
        slots.convert<In, Out>([](In value) { return convert<Out>(value); });
      }
    });
  });
}

// Infinities of DATE and TIMESTAMP are their largest values, positive and negative.
template <class T>
int infinity(T value) {
  constexpr T infinite = std::numeric_limits<T>::max();
  return value == infinite ? 1 : value == -infinite ? -1 : 0;
}

template <class In>
void widen_moments(int64_t factor, const char* type, const Slots& slots) {
  slots.convert<In, int64_t>([&](In value) {
    if (const int sign = infinity(value)) return sign * std::numeric_limits<int64_t>::max();
    int64_t scaled;
    if (__builtin_mul_overflow(int64_t{value}, factor, &scaled)) {
      throw Error(Error::Kind::pack,
                  "value " + std::to_string(value) + " is outside the range of DuckDB's " + type);
    }
    return scaled;
  });
}

void widen_moments(duckdb_type from, duckdb_type to, const Slots& slots) {
  int64_t factor = from == DUCKDB_TYPE_DATE ? 86'400 : 1;
  const auto* const first = std::max(find_moment(from), find_moment(DUCKDB_TYPE_TIMESTAMP_S));
  for (auto unit = first; unit != find_moment(to); ++unit) factor *= 1'000;
  const std::string name = type_name(logical_type(to).get());
  if (from == DUCKDB_TYPE_DATE) {
    widen_moments<int32_t>(factor, name.c_str(), slots);
  } else {
    widen_moments<int64_t>(factor, name.c_str(), slots);
  }
}

Value value_of(duckdb_type type, const void* data, size_t i) {
  const auto at = [&](auto sample) { return static_cast<const decltype(sample)*>(data)[i]; };
  switch (type) {
    case DUCKDB_TYPE_BOOLEAN:
      return Value(duckdb_create_bool(at(uint8_t{}) != 0));
    case DUCKDB_TYPE_TINYINT:
      return Value(duckdb_create_int8(at(int8_t{})));
    case DUCKDB_TYPE_SMALLINT:
      return Value(duckdb_create_int16(at(int16_t{})));
    case DUCKDB_TYPE_INTEGER:
      return Value(duckdb_create_int32(at(int32_t{})));
    case DUCKDB_TYPE_BIGINT:
      return Value(duckdb_create_int64(at(int64_t{})));
    case DUCKDB_TYPE_UTINYINT:
      return Value(duckdb_create_uint8(at(uint8_t{})));
    case DUCKDB_TYPE_USMALLINT:
      return Value(duckdb_create_uint16(at(uint16_t{})));
    case DUCKDB_TYPE_UINTEGER:
      return Value(duckdb_create_uint32(at(uint32_t{})));
    case DUCKDB_TYPE_UBIGINT:
      return Value(duckdb_create_uint64(at(uint64_t{})));
    case DUCKDB_TYPE_FLOAT:
      return Value(duckdb_create_float(at(float{})));
    case DUCKDB_TYPE_DOUBLE:
      return Value(duckdb_create_double(at(double{})));
    case DUCKDB_TYPE_DATE:
      return Value(duckdb_create_date(at(duckdb_date{})));
    case DUCKDB_TYPE_TIMESTAMP_S:
      return Value(duckdb_create_timestamp_s(at(duckdb_timestamp_s{})));
    case DUCKDB_TYPE_TIMESTAMP_MS:
      return Value(duckdb_create_timestamp_ms(at(duckdb_timestamp_ms{})));
    case DUCKDB_TYPE_TIMESTAMP:
      return Value(duckdb_create_timestamp(at(duckdb_timestamp{})));
    default:
      return Value(duckdb_create_timestamp_ns(at(duckdb_timestamp_ns{})));
  }
}

// As a cast writes them.
void widen_to_text(duckdb_type from, const Slots& slots, duckdb_vector vector) {
  for (size_t i = 0; i < slots.count; ++i) {
    const std::string text =
        slots.is_valid(i) ? take_text(duckdb_get_varchar(value_of(from, slots.in, i).get())) : "";
    duckdb_unsafe_vector_assign_string_element_len(vector, i, text.data(), text.size());
  }
}

// Of one vector at most, so that the values find room beside it.
void fill_widened(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                  duckdb_vector vector) {
  const ValueType& source = type.children[0];
  const duckdb_type from = duckdb_get_type_id(source.logical.get());
  const duckdb_type to = duckdb_get_type_id(type.logical.get());
  const Handle<duckdb_vector> scratch(
      duckdb_create_vector(source.logical.get(), duckdb_vector_size()));
  source.fill(source, view, rows, scratch.get());

  const uint64_t* mask = duckdb_vector_get_validity(scratch.get());
  if (mask != nullptr) {
    duckdb_vector_ensure_validity_writable(vector);
    std::copy_n(mask, (rows.count() + 63) / 64, duckdb_vector_get_validity(vector));
  }
  const Slots slots{duckdb_vector_get_data(scratch.get()), duckdb_vector_get_data(vector), mask,
                    rows.count()};
  if (to == DUCKDB_TYPE_VARCHAR) {
    widen_to_text(from, slots, vector);
  } else if (is_moment(to)) {
    widen_moments(from, to, slots);
  } else {
    widen_numbers(from, to, slots);
  }
}

}  // namespace

std::optional<duckdb_type> common_type(std::span<const duckdb_type> types) {
  const bool any_text = std::find(types.begin(), types.end(), DUCKDB_TYPE_VARCHAR) != types.end();
  std::optional<duckdb_type> common = any_text ? DUCKDB_TYPE_VARCHAR : types.front();
  for (size_t i = 0; i < types.size() && common; ++i) common = common_type(*common, types[i]);
  return common;
}

ValueType widened(ValueType from, duckdb_type to) {
  ValueType type;
  type.logical = logical_type(to);
  type.fill = fill_widened;
  type.children.push_back(std::move(from));
  return type;
}

}  // namespace iac::duckdb
