#include "iac/wsi/region.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "iac/error.h"
#include "iac/scratch.h"

namespace iac::wsi {
namespace {

// What a region has of a tile along one axis: `count` pixels from `from` on, at `to` in the region.
struct Part {
  int64_t from = 0, to = 0, count = 0;
};

Part part(int64_t at, int64_t valid, int64_t size) {
  if (at >= size || at <= -valid) return {};
  const int64_t to = std::max<int64_t>(at, 0);
  return {to - at, to, std::min(at + valid, size) - to};
}

// Throws Error unless the payload is of a tile that may be decoded.
void check(const Codec& codec, Bytes payload, const ImageShape& shape, const DecodeLimits& limits) {
  if (!codec.gives_images()) {
    throw Error(Error::Kind::pack, "raster_codec decodes to no images");
  }
  const ImageShape found = codec.decoded_size(payload).image;
  if (found != shape) {
    throw Error(Error::Kind::codec, std::string(codec.name()) + ": the tile is " + describe(found) +
                                        ", the header says " + describe(shape));
  }
  if (shape.bytes() > limits.record_bytes) throw too_large(limits);
}

void decode(const Codec& codec, Bytes payload, const ImageShape& shape, Target& target) {
  if (codec.decode(payload, target) == shape.bytes()) return;
  throw Error(Error::Kind::codec, std::string(codec.name()) + ": the tile is not of its size");
}

}  // namespace

void read_region(const Pack& pack, std::span<const RegionTile> tiles, const ImageShape& shape,
                 const Region& region, const ReadOptions& options) {
  const uint64_t pixel = shape.channels * size_of(shape.type);
  const uint64_t pitch = static_cast<uint64_t>(region.width) * pixel;
  const uint64_t tile_pitch = shape.width * pixel;
  std::vector<int64_t> rows;
  for (const RegionTile& tile : tiles) rows.push_back(tile.row);
  pack.for_each_payload(rows, options, [&](size_t i, Bytes payload, const Codec& codec) {
    check(codec, payload, shape, options.limits);
    const RegionTile& tile = tiles[i];
    const Part down = part(tile.y, std::min(tile.valid_height, shape.height), region.height);
    const Part across = part(tile.x, std::min(tile.valid_width, shape.width), region.width);
    std::byte* const to = region.pixels + static_cast<uint64_t>(down.to) * pitch +
                          static_cast<uint64_t>(across.to) * pixel;
    if (pitch == tile_pitch && down.count == shape.height && across.count == shape.width) {
      Target whole(to, shape.bytes());
      decode(codec, payload, shape, whole);
      return;
    }
    // Its rows are still in the processor's cache when they are copied.
    thread_local Scratch scratch;
    scratch.restart();
    scratch.limit_record(shape.bytes());
    decode(codec, payload, shape, scratch);
    const std::byte* const from = scratch.data() + static_cast<uint64_t>(down.from) * tile_pitch +
                                  static_cast<uint64_t>(across.from) * pixel;
    for (uint64_t y = 0; y < static_cast<uint64_t>(down.count); ++y) {
      std::memcpy(to + y * pitch, from + y * tile_pitch,
                  static_cast<uint64_t>(across.count) * pixel);
    }
    scratch.release_if_large();
  });
}

}  // namespace iac::wsi
