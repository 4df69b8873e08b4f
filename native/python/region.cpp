#include "iac/wsi/region.h"

#include "python/bindings.h"

namespace iac::python {
namespace {

template <class T>
constexpr PixelType type_of = sizeof(T) == 1 ? PixelType::uint8 : PixelType::uint16;

py::value_error bad(const char* reason) {
  return py::value_error(std::string("read_tiles: ") + reason);
}

// `places` are rows of y and x in `out`, `sizes` of the valid height and width.
template <class T>
void read_tiles(const Pack& pack, py::array_t<T, py::array::c_style> out, const Rows& rows,
                const Rows& places, const Rows& sizes, std::pair<uint32_t, uint32_t> tile_size,
                unsigned workers) {
  const py::ssize_t count = rows.size();
  const auto are_pairs = [count](const Rows& pairs) {
    return pairs.ndim() == 2 && pairs.shape(0) == count && pairs.shape(1) == 2;
  };
  if (out.ndim() != 3 || out.shape(2) > 4 || rows.ndim() != 1 || !are_pairs(places) ||
      !are_pairs(sizes)) {
    throw bad("shapes do not fit");
  }
  std::vector<wsi::RegionTile> tiles;
  for (py::ssize_t i = 0; i < count; ++i) {
    const int64_t height = sizes.at(i, 0), width = sizes.at(i, 1);
    if (height < 0 || width < 0 || height > tile_size.first || width > tile_size.second) {
      throw bad("a valid size that no tile has");
    }
    tiles.push_back({rows.at(i), places.at(i, 0), places.at(i, 1), static_cast<uint32_t>(height),
                     static_cast<uint32_t>(width)});
  }
  const ImageShape shape{tile_size.first, tile_size.second, static_cast<uint32_t>(out.shape(2)),
                         type_of<T>};
  const wsi::Region region{reinterpret_cast<std::byte*>(out.mutable_data()), out.shape(0),
                           out.shape(1)};
  ReadOptions options;
  options.workers = workers;
  const Unlocked unlocked;
  wsi::read_region(pack, tiles, shape, region, options);
}

template <class T>
void bind(py::module_& module) {
  module.def("read_tiles", &read_tiles<T>, py::arg("pack"), py::arg("out").noconvert(),
             py::arg("rows"), py::arg("places"), py::arg("sizes"), py::arg("tile_size"),
             py::arg("workers"));
}

}  // namespace

void bind_region(py::module_& module) {
  bind<uint8_t>(module);
  bind<uint16_t>(module);
}

}  // namespace iac::python
