// iac_hu(record) -> STRUCT(height, width, channels, data FLOAT[]): the pixels of a DICOM instance
// after its modality LUT, row by row with channels interleaved; NULL without pixels.
#include <iac/dicom/modality.h>
#include <iac/error.h>
#include <iac/workers.h>

#include <vector>

#include "functions.h"
#include "image.h"
#include "nulls.h"
#include "resolve.h"

namespace iac::duckdb {
namespace {

LogicalType values_type() {
  const LogicalType integer = logical_type(DUCKDB_TYPE_INTEGER);
  const LogicalType list(duckdb_create_list_type(logical_type(DUCKDB_TYPE_FLOAT).get()));
  duckdb_logical_type types[] = {integer.get(), integer.get(), integer.get(), list.get()};
  const char* names[] = {"height", "width", "channels", "data"};
  return LogicalType(duckdb_create_struct_type(types, names, std::size(types)));
}

// Where the records that are images put their values.
struct Image {
  size_t record;  // of the batch
  uint64_t place;
};

void write_values(const Records& records, duckdb_vector out) {
  const auto headers = records.read_headers();
  const Batch batch = records.read_images();
  const auto* const offsets = reinterpret_cast<const uint64_t*>(batch.offsets.data());
  const auto integers = [&](idx_t child) {
    return static_cast<int32_t*>(
        duckdb_vector_get_data(duckdb_struct_vector_get_child(out, child)));
  };
  int32_t *heights = integers(0), *widths = integers(1), *channels = integers(2);
  const duckdb_vector list = duckdb_struct_vector_get_child(out, 3);
  auto* const entries = static_cast<duckdb_list_entry*>(duckdb_vector_get_data(list));
  const idx_t first = duckdb_list_vector_get_size(list);
  std::vector<Image> images;
  std::vector<idx_t> missing;
  uint64_t samples = 0;
  for (size_t i = 0; i < batch.count; ++i) {
    const idx_t slot = records.slots[i];
    const ImageShape shape = batch.images.empty() ? ImageShape{} : batch.images[i];
    if (shape.channels == 0) {
      missing.push_back(slot);
      continue;
    }
    heights[slot] = image_side(shape.height, records.rows[i]);
    widths[slot] = image_side(shape.width, records.rows[i]);
    channels[slot] = static_cast<int32_t>(shape.channels);
    entries[slot] = {first + samples, shape.samples()};
    images.push_back({i, first + samples});
    samples += shape.samples();
  }
  records.count(samples * sizeof(float));
  if (duckdb_list_vector_reserve(list, first + samples) != DuckDBSuccess ||
      duckdb_list_vector_set_size(list, first + samples) != DuckDBSuccess) {
    throw std::bad_alloc();
  }
  auto* const values =
      static_cast<float*>(duckdb_vector_get_data(duckdb_list_vector_get_child(list)));
  parallel_for(images.size(), worker_count(records.settings.threads, images.size()), [&](size_t i) {
    const auto& [record, place] = images[i];
    try {
      const auto& [header, frame] = headers[record];
      dicom::ModalityLut(*header, frame)
          .apply(batch.images[record], batch.data.data() + offsets[record], values + place);
    } catch (Error& error) {
      throw std::move(error).at(records.rows[record]);
    }
  });
  set_nulls(missing, out);
}

}  // namespace

void register_hu(duckdb_connection connection) {
  static constexpr Resolver resolver{
      .name = "iac_hu", .result = values_type, .write = write_values};
  register_resolver(connection, resolver);
}

}  // namespace iac::duckdb
