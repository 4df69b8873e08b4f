// Images made coarser by area averages: each pixel of the result covers a rectangle of the source,
// and the sums over these rectangles come tile by tile, so that no more of the source than some
// tiles is in memory.
#pragma once

#include <cstdint>
#include <span>

#include "iac/bytes.h"
#include "iac/image.h"

namespace iac {

// Along one axis, cell i covers the source from start + i * scale up to start + (i + 1) * scale,
// scale being 1 or more.
struct AreaAxis {
  double start, scale;
  size_t cells;
};

// Some pixels of the source, fewer than 2^16 rows: where they are, and the distance of its rows in
// bytes.
struct AreaTile {
  int64_t y, x;
  uint32_t height, width;
  const std::byte* pixels;
  int64_t pitch;
};

// Adds to `sums`, rows.cells x columns.cells x channels, what each tile has over each cell: the
// sum of (value - background) times the part of the pixel that is inside. `type` is uint8 or
// uint16. Pixels that no tile has count as background.
void add_area_sums(std::span<const AreaTile> tiles, PixelType type,
                   std::span<const double> background, const AreaAxis& rows,
                   const AreaAxis& columns, double* sums, unsigned workers);

}  // namespace iac
