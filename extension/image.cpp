// iac_image(record) -> STRUCT(height, width, channels, dtype, data): a decoded image, its pixels
// row by row with channels interleaved, little-endian; NULL for a DICOM instance without pixels and
// for what is no image of a whole slide.
#include "image.h"

#include <iac/error.h>

#include <vector>

#include "functions.h"
#include "nulls.h"
#include "resolve.h"
#include "strings.h"

namespace iac::duckdb {
namespace {

LogicalType image_type() {
  const LogicalType integer = logical_type(DUCKDB_TYPE_INTEGER);
  const LogicalType text = logical_type(DUCKDB_TYPE_VARCHAR);
  const LogicalType blob = logical_type(DUCKDB_TYPE_BLOB);
  duckdb_logical_type types[] = {integer.get(), integer.get(), integer.get(), text.get(),
                                 blob.get()};
  const char* names[] = {"height", "width", "channels", "dtype", "data"};
  return LogicalType(duckdb_create_struct_type(types, names, std::size(types)));
}

void write_images(const Records& records, duckdb_vector out) {
  const Batch batch = records.read_images();
  const std::span<const int64_t> rows = records.rows;
  const std::span<const idx_t> slots = records.slots;
  const auto integers = [&](idx_t child) {
    return static_cast<int32_t*>(
        duckdb_vector_get_data(duckdb_struct_vector_get_child(out, child)));
  };
  int32_t *heights = integers(0), *widths = integers(1), *channels = integers(2);
  duckdb_string_t* dtypes = strings_of(duckdb_struct_vector_get_child(out, 3));
  std::vector<idx_t> missing;
  for (size_t i = 0; i < batch.count; ++i) {
    const ImageShape shape = batch.images.empty() ? ImageShape{} : batch.images[i];
    if (shape.channels == 0) {
      missing.push_back(slots[i]);
      continue;
    }
    heights[slots[i]] = image_side(shape.height, rows[i]);
    widths[slots[i]] = image_side(shape.width, rows[i]);
    channels[slots[i]] = static_cast<int32_t>(shape.channels);
    const std::string_view name = name_of(shape.type);
    dtypes[slots[i]] = string_header(name.data(), static_cast<uint32_t>(name.size()), nullptr);
  }
  write_bytes(records, batch, duckdb_struct_vector_get_child(out, 4));
  set_nulls(missing, out);
}

}  // namespace

void register_image(duckdb_connection connection) {
  static constexpr Resolver resolver{
      .name = "iac_image", .result = image_type, .write = write_images};
  register_resolver(connection, resolver);
}

}  // namespace iac::duckdb
