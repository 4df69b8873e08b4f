// Rectangles of a slide's raster, put together from its tiles.
#pragma once

#include <cstdint>
#include <span>

#include "iac/image.h"
#include "iac/pack.h"

namespace iac::wsi {

// Pixels row by row, without gaps, channels interleaved.
struct Region {
  std::byte* pixels;
  int64_t height, width;
};

// The record of a tile, where its upper left pixel lies from that of a region on, which may be
// outside, and how much of it is slide, the rest being padding.
struct RegionTile {
  int64_t row;
  int64_t y, x;
  uint32_t valid_height, valid_width;
};

// Decodes tiles in parallel, each straight to its place; pixels of the region that no tile covers
// stay as they are. Tiles do not overlap, and are all images of `shape`, as the region's pixels
// are. Throws the error of the first tile that is none, with its row, and then leaves the region
// half filled.
void read_region(const Pack& pack, std::span<const RegionTile> tiles, const ImageShape& shape,
                 const Region& region, const ReadOptions& options);

}  // namespace iac::wsi
