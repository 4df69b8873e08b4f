// Where the tiles of a whole slide lie, as the header of its pack says.
#pragma once

#include <cstdint>
#include <vector>

#include "iac/pack.h"

namespace iac::wsi {

struct Grid {
  int64_t tile_width, tile_height;
  double mpp_x, mpp_y;               // micrometres a native pixel
  std::vector<int64_t> downsamples;  // native pixels for one of each level, the native one first
};

// Throws Error for a header that does not say.
Grid read_grid(const Pack& pack);

}  // namespace iac::wsi
