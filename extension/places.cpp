#include "places.h"

#include <iac/error.h>
#include <iac/wsi/tiles.h>

#include <new>
#include <string>
#include <vector>

namespace iac::duckdb {
namespace {

constexpr const char* names[] = {"x", "y", "x_um", "y_um", "mpp_x", "mpp_y"};
constexpr size_t pixels = 2;  // the first ones, which are whole numbers

void require(ArrowErrorCode code) {
  if (code != NANOARROW_OK) throw std::bad_alloc();
}

std::optional<size_t> integer_column(const Table& index, const char* name) {
  const auto found = index.find(name);
  if (!found) return std::nullopt;
  ArrowSchemaView view;
  if (ArrowSchemaViewInit(&view, &index.field(*found), nullptr) != NANOARROW_OK) return {};
  const bool is_integer = view.type >= NANOARROW_TYPE_UINT8 && view.type <= NANOARROW_TYPE_INT64;
  return is_integer ? found : std::nullopt;
}

Error beyond(const std::string& number) {
  return {Error::Kind::pack, "tile " + number + " lies beyond 64 bits"};
}

std::optional<int64_t> value_of(const Column& column, int64_t row) {
  const ArrowArrayView& view = column.view();
  if (ArrowArrayViewIsNull(&view, row)) return std::nullopt;
  if (view.storage_type == NANOARROW_TYPE_UINT64) {
    const uint64_t value = ArrowArrayViewGetUIntUnsafe(&view, row);
    if (value > INT64_MAX) throw beyond(std::to_string(value));
  }
  return ArrowArrayViewGetIntUnsafe(&view, row);
}

int64_t downsample_of(const wsi::Grid& grid, const Column* level, int64_t row) {
  if (level == nullptr) return 1;
  const auto number = value_of(*level, row).value_or(0);
  if (number < 0 || static_cast<size_t>(number) >= grid.downsamples.size()) {
    throw Error(Error::Kind::pack, "its level is " + std::to_string(number) + ", there are " +
                                       std::to_string(grid.downsamples.size()));
  }
  return grid.downsamples[static_cast<size_t>(number)];
}

}  // namespace

std::optional<PlaceColumns> find_places(const Pack& pack) {
  if (!wsi::is_slide(pack)) return std::nullopt;
  const Table& index = *pack.index();
  const auto x = integer_column(index, "tile_x"), y = integer_column(index, "tile_y");
  if (!x || !y) return std::nullopt;
  return PlaceColumns{*x, *y, integer_column(index, "level")};
}

std::span<const char* const> place_names() { return names; }

nanoarrow::UniqueSchema place_field(size_t place) {
  nanoarrow::UniqueSchema field;
  require(ArrowSchemaInitFromType(field.get(),
                                  place < pixels ? NANOARROW_TYPE_INT64 : NANOARROW_TYPE_DOUBLE));
  return field;
}

void fill_places(const PackColumn& column, const wsi::Grid& grid, const PlaceColumns& places,
                 const Columns& index, int64_t row, size_t count, duckdb_vector vector) {
  const bool along_y = column.position % 2 == 1;
  const Column& tiles = *index[along_y ? places.tile_y : places.tile_x];
  const Column* const level = places.level ? index[*places.level].get() : nullptr;
  const int64_t side = along_y ? grid.tile_height : grid.tile_width;
  const double mpp = along_y ? grid.mpp_y : grid.mpp_x;
  const nanoarrow::UniqueSchema field = place_field(column.position);
  nanoarrow::UniqueArray values;
  require(ArrowArrayInitFromSchema(values.get(), field.get(), nullptr));
  require(ArrowArrayStartAppending(values.get()));
  for (int64_t i = row; i < row + static_cast<int64_t>(count); ++i) {
    const auto tile = value_of(tiles, i);
    if (!tile) {
      require(ArrowArrayAppendNull(values.get(), 1));
      continue;
    }
    const int64_t down = downsample_of(grid, level, i);
    int64_t pixel;
    if (__builtin_mul_overflow(*tile, side * down, &pixel)) throw beyond(std::to_string(*tile));
    const auto at = static_cast<double>(pixel);
    switch (column.position / 2) {
      case 0:
        require(ArrowArrayAppendInt(values.get(), pixel));
        break;
      case 1:
        require(ArrowArrayAppendDouble(values.get(), at * mpp));
        break;
      default:
        require(ArrowArrayAppendDouble(values.get(), static_cast<double>(down) * mpp));
    }
  }
  require(ArrowArrayFinishBuildingDefault(values.get(), nullptr));
  nanoarrow::UniqueArrayView view;
  require(ArrowArrayViewInitFromSchema(view.get(), field.get(), nullptr));
  require(ArrowArrayViewSetArray(view.get(), values.get(), nullptr));
  column.type.fill(column.type, *view.get(), Rows(0, count), vector);
}

}  // namespace iac::duckdb
