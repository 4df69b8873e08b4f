// iac_vector(record) -> FLOAT[] and iac_vector_double(record) -> DOUBLE[]: the rows of a matrix
// pack.
#include <iac/bytes.h>
#include <iac/error.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "functions.h"
#include "half_float.h"
#include "resolve.h"

namespace iac::duckdb {
namespace {

struct Half {
  uint16_t bits;
};

// The value itself, or the nearest one where both are floating-point numbers. An integer that
// would change, and a number that would become infinite, is refused.
template <class Out, class In>
bool convert(In in, Out& out) {
  if constexpr (std::is_same_v<In, Half>) {
    out = widen(in.bits);
    return true;
  } else if constexpr (std::is_same_v<In, bool>) {
    out = in ? 1 : 0;
    return true;
  } else {
    out = static_cast<Out>(in);
    if constexpr (std::is_floating_point_v<In>) {
      return std::isfinite(out) || !std::isfinite(in);
    } else {
      return static_cast<__int128>(out) == static_cast<__int128>(in);
    }
  }
}

template <class In>
In load_value(const std::byte* at) {
  if constexpr (std::is_same_v<In, bool>) {
    return *at != std::byte{0};
  } else {
    return load<In>(at);
  }
}

// Where value i of the matrix stands that `Out` cannot hold; -1: there is none.
template <class Out, class In>
int64_t convert_all(const std::byte* in, Out* out, size_t count) {
  if constexpr (std::is_same_v<Out, In>) {
    if (count > 0) std::memcpy(out, in, count * sizeof(Out));
  } else {
    for (size_t i = 0; i < count; ++i) {
      if (!convert(load_value<In>(in + i * sizeof(In)), out[i])) return static_cast<int64_t>(i);
    }
  }
  return -1;
}

template <class Out>
struct DataType {
  std::string_view name;  // NumPy's
  uint64_t bytes;
  int64_t (*convert)(const std::byte*, Out*, size_t);
};

template <class Out>
constexpr DataType<Out> data_types[] = {
    {"float16", 2, convert_all<Out, Half>},    {"float32", 4, convert_all<Out, float>},
    {"float64", 8, convert_all<Out, double>},  {"bool", 1, convert_all<Out, bool>},
    {"int8", 1, convert_all<Out, int8_t>},     {"int16", 2, convert_all<Out, int16_t>},
    {"int32", 4, convert_all<Out, int32_t>},   {"int64", 8, convert_all<Out, int64_t>},
    {"uint8", 1, convert_all<Out, uint8_t>},   {"uint16", 2, convert_all<Out, uint16_t>},
    {"uint32", 4, convert_all<Out, uint32_t>}, {"uint64", 8, convert_all<Out, uint64_t>},
};

template <class Out>
const DataType<Out>& data_type(const Pack& pack) {
  if (pack.layout().kind() != Layout::Kind::fixed) {
    throw Error(Error::Kind::argument,
                "its records are not the rows of a matrix, use iac_payload, iac_text or iac_image");
  }
  const FixedShape& shape = *pack.header().fixed;
  const auto* type =
      std::find_if(std::begin(data_types<Out>), std::end(data_types<Out>),
                   [&](const DataType<Out>& candidate) { return candidate.name == shape.dtype; });
  if (type == std::end(data_types<Out>)) {
    throw Error(Error::Kind::argument,
                "its dtype '" + shape.dtype + "' has no DuckDB type, use iac_payload");
  }
  uint64_t bytes;
  if (__builtin_mul_overflow(shape.dim, type->bytes, &bytes) || bytes != shape.record_bytes) {
    throw Error(Error::Kind::pack, "header field feature_record_bytes is " +
                                       std::to_string(shape.record_bytes) + ", expected " +
                                       std::to_string(shape.dim) + " x " +
                                       std::to_string(type->bytes));
  }
  return *type;
}

Error does_not_hold(int64_t element, float) {
  return {Error::Kind::argument, "FLOAT cannot hold element " + std::to_string(element) +
                                     " of the vector, use iac_vector_double"};
}

Error does_not_hold(int64_t element, double) {
  return {Error::Kind::argument, "DOUBLE cannot hold element " + std::to_string(element) +
                                     " of the vector, use iac_payload"};
}

template <class Out>
void write_vectors(const Records& records, duckdb_vector out) {
  const DataType<Out>& type = data_type<Out>(records.pack);
  const FixedShape& shape = *records.pack.header().fixed;
  const size_t rows = records.rows.size();
  if (sizeof(Out) > type.bytes) {  // what reading does not count
    uint64_t more;
    if (__builtin_mul_overflow(rows * (sizeof(Out) - type.bytes), shape.dim, &more)) {
      more = UINT64_MAX;
    }
    records.count(more);
  }
  const Batch batch = records.read(true);
  if (batch.data.size() != rows * shape.record_bytes) {
    throw Error(Error::Kind::codec, "records decode to other sizes than the header says");
  }

  const idx_t first = duckdb_list_vector_get_size(out);
  const idx_t size = first + rows * shape.dim;
  if (duckdb_list_vector_reserve(out, size) != DuckDBSuccess ||
      duckdb_list_vector_set_size(out, size) != DuckDBSuccess) {
    throw std::bad_alloc();
  }
  auto* const entries = static_cast<duckdb_list_entry*>(duckdb_vector_get_data(out));
  for (size_t i = 0; i < rows; ++i) {
    entries[records.slots[i]] = {first + i * shape.dim, shape.dim};
  }
  auto* const values =
      static_cast<Out*>(duckdb_vector_get_data(duckdb_list_vector_get_child(out))) + first;
  const int64_t bad = type.convert(batch.data.data(), values, rows * shape.dim);
  if (bad < 0) return;
  const auto dim = static_cast<int64_t>(shape.dim);
  throw does_not_hold(bad % dim, Out{}).at(records.rows[static_cast<size_t>(bad / dim)]);
}

template <duckdb_type element>
LogicalType list_type() {
  return LogicalType(duckdb_create_list_type(logical_type(element).get()));
}

}  // namespace

void register_vector(duckdb_connection connection) {
  static constexpr Resolver as_float{
      .name = "iac_vector", .result = list_type<DUCKDB_TYPE_FLOAT>, .write = write_vectors<float>};
  static constexpr Resolver as_double{.name = "iac_vector_double",
                                      .result = list_type<DUCKDB_TYPE_DOUBLE>,
                                      .write = write_vectors<double>};
  register_resolver(connection, as_float);
  register_resolver(connection, as_double);
}

}  // namespace iac::duckdb
