#include "vectors.h"

#include <iac/bytes.h>
#include <iac/error.h>

namespace iac::duckdb {
namespace {

constexpr size_t word_bits = 64;

// 64 bits of a bitmap from bit `first` on, as far as it has them.
uint64_t load_bits(const uint8_t* bitmap, int64_t size, int64_t first) {
  const int64_t byte = first / 8;
  std::byte bytes[9] = {};
  const auto available = static_cast<size_t>(std::min<int64_t>(size - byte, sizeof bytes));
  std::memcpy(bytes, bitmap + byte, available);
  const int shift = static_cast<int>(first % 8);
  const auto low = load<uint64_t>(bytes) >> shift;
  return shift == 0 ? low : low | static_cast<uint64_t>(bytes[8]) << (word_bits - shift);
}

bool copy_validity(const ArrowArrayView& view, const Rows& rows, duckdb_vector vector) {
  if (view.storage_type == NANOARROW_TYPE_NA) return false;
  if (view.null_count == 0 || view.layout.buffer_type[0] != NANOARROW_BUFFER_TYPE_VALIDITY) {
    return false;
  }
  const ArrowBufferView& bitmap = view.buffer_views[0];
  uint64_t* mask = nullptr;
  for (size_t i = 0; i < rows.count(); i += word_bits) {
    const size_t count = std::min(word_bits, rows.count() - i);
    const uint64_t used = count == word_bits ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
    const uint64_t bits =
        load_bits(bitmap.data.as_uint8, bitmap.size_bytes, rows.first() + static_cast<int64_t>(i));
    if ((bits & used) == used) continue;
    if (mask == nullptr) {
      duckdb_vector_ensure_validity_writable(vector);
      mask = duckdb_vector_get_validity(vector);
    }
    mask[i / word_bits] = bits | ~used;
  }
  return mask != nullptr;
}

bool gather_validity(const ArrowArrayView& view, const Rows& rows, duckdb_vector vector) {
  uint64_t* mask = nullptr;
  for (size_t i = 0; i < rows.count(); ++i) {
    if (!is_null(view, rows[i])) continue;
    if (mask == nullptr) {
      duckdb_vector_ensure_validity_writable(vector);
      mask = duckdb_vector_get_validity(vector);
    }
    mask[i / word_bits] &= ~(uint64_t{1} << (i % word_bits));
  }
  return mask != nullptr;
}

}  // namespace

bool fill_validity(const ValueType& type, const ArrowArrayView& view, const Rows& rows,
                   duckdb_vector vector) {
  const bool any =
      rows.contiguous() ? copy_validity(view, rows, vector) : gather_validity(view, rows, vector);
  if (any && type.required) {
    throw Error(Error::Kind::pack, "a map has a NULL key, which DuckDB's maps cannot have");
  }
  return any;
}

void fill_null(const ValueType&, const ArrowArrayView&, const Rows& rows, duckdb_vector vector) {
  duckdb_vector_ensure_validity_writable(vector);
  uint64_t* mask = duckdb_vector_get_validity(vector);
  std::memset(mask, 0, (rows.count() + word_bits - 1) / word_bits * sizeof *mask);
}

}  // namespace iac::duckdb
