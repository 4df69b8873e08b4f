// The columns that say where the tiles of a whole slide lie: x and y, the upper left native pixel,
// x_um and y_um, the same in micrometres, and mpp_x and mpp_y, micrometres a pixel of the tile.
// NULL for records that are no tiles. Neither table has them, the grid gives them.
#pragma once

#include <iac/pack.h>
#include <iac/wsi/grid.h>

#include <optional>
#include <span>

#include "columns.h"

namespace iac::duckdb {

// What they are computed from, as columns of the index table.
struct PlaceColumns {
  size_t tile_x, tile_y;
  std::optional<size_t> level;
};

// Nothing for a pack without tiles in a grid.
std::optional<PlaceColumns> find_places(const Pack& pack);

std::span<const char* const> place_names();

// The field that a table would have for it.
nanoarrow::UniqueSchema place_field(size_t place);

// Rows [row, row + count) of a batch of the index table, whose columns these are.
void fill_places(const PackColumn& column, const wsi::Grid& grid, const PlaceColumns& places,
                 const Columns& index, int64_t row, size_t count, duckdb_vector vector);

}  // namespace iac::duckdb
