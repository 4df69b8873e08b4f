#include "iac/area_sums.h"

#include "python/bindings.h"

namespace iac::python {
namespace {

using Sums = py::array_t<double, py::array::c_style>;

py::value_error bad(const char* reason) {
  return py::value_error(std::string("add_area_sums: ") + reason);
}

// `tiles` are arrays (height, width, channels) of one type whose rows are contiguous, `places`
// their upper left pixels, rows of y and x.
void add(Sums sums, const py::list& tiles, const Rows& places, std::pair<double, double> start,
         std::pair<double, double> scale, const std::vector<double>& background, unsigned workers) {
  if (sums.ndim() != 3 || places.ndim() != 2 || places.shape(1) != 2 ||
      static_cast<size_t>(places.shape(0)) != tiles.size() ||
      static_cast<size_t>(sums.shape(2)) != background.size()) {
    throw bad("shapes do not fit");
  }
  if (!(scale.first >= 1 && scale.second >= 1)) throw bad("scale below 1");
  std::vector<AreaTile> held;
  std::optional<PixelType> type;
  for (size_t i = 0; i < tiles.size(); ++i) {
    const auto array = py::cast<py::array>(tiles[i]);
    const auto pixel = pixel_type(array.dtype().attr("name").cast<std::string>());
    const bool is_known = pixel == PixelType::uint8 || pixel == PixelType::uint16;
    if (!is_known || (type && type != pixel)) throw bad("tiles of another type");
    type = pixel;
    if (array.ndim() != 3 || array.shape(2) != sums.shape(2) ||
        array.strides(2) != array.itemsize() ||
        array.strides(1) != array.itemsize() * array.shape(2) || array.shape(0) > UINT16_MAX ||
        array.shape(1) > UINT32_MAX) {
      throw bad("tiles of another shape");
    }
    const auto row = static_cast<py::ssize_t>(i);
    held.push_back({places.at(row, 0), places.at(row, 1), static_cast<uint32_t>(array.shape(0)),
                    static_cast<uint32_t>(array.shape(1)),
                    static_cast<const std::byte*>(array.data()), array.strides(0)});
  }
  if (held.empty()) return;
  const AreaAxis rows{start.first, scale.first, static_cast<size_t>(sums.shape(0))};
  const AreaAxis columns{start.second, scale.second, static_cast<size_t>(sums.shape(1))};
  double* const out = sums.mutable_data();
  const Unlocked unlocked;
  add_area_sums(held, *type, background, rows, columns, out, workers);
}

}  // namespace

void bind_area_sums(py::module_& module) {
  module.def("add_area_sums", &add, py::arg("sums").noconvert(), py::arg("tiles"),
             py::arg("places"), py::arg("start"), py::arg("scale"), py::arg("background"),
             py::arg("workers"));
}

}  // namespace iac::python
