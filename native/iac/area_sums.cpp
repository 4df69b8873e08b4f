#include "iac/area_sums.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "iac/workers.h"

namespace iac {
namespace {

// Result rows that a thread takes at a time.
constexpr size_t rows_at_a_time = 16;

// What a cell covers of `size` pixels from `at` on: pixels [first, last), counted from `at`, all
// of them whole but for the first and the last.
struct Cover {
  size_t cell;
  uint32_t first, last;
  double of_first, of_last;

  double weight(uint32_t pixel) const {
    if (pixel == first) return of_first;
    return pixel + 1 == last ? of_last : 1.0;
  }
};

double part(double low, double high, int64_t pixel) {
  return std::min(high, static_cast<double>(pixel + 1)) - std::max(low, static_cast<double>(pixel));
}

// Covers of the cells [from, to) that have some of the pixels.
std::vector<Cover> covers(const AreaAxis& axis, size_t from, size_t to, int64_t at, uint32_t size) {
  const double first_cell = (static_cast<double>(at) - axis.start) / axis.scale - 2;
  const double last_cell = (static_cast<double>(at + size) - axis.start) / axis.scale + 2;
  const auto bounded = [&](double cell) {
    return static_cast<size_t>(
        std::clamp(cell, static_cast<double>(from), static_cast<double>(to)));
  };
  std::vector<Cover> out;
  for (size_t cell = bounded(first_cell); cell < bounded(last_cell); ++cell) {
    const double low = axis.start + static_cast<double>(cell) * axis.scale;
    const double high = axis.start + static_cast<double>(cell + 1) * axis.scale;
    const int64_t first = std::max(static_cast<int64_t>(std::floor(low)), at);
    const int64_t last = std::min(static_cast<int64_t>(std::ceil(high)), at + size);
    if (first >= last) continue;
    out.push_back({cell, static_cast<uint32_t>(first - at), static_cast<uint32_t>(last - at),
                   part(low, high, first), part(low, high, last - 1)});
  }
  return out;
}

double total(const Cover& cover) {
  const uint32_t count = cover.last - cover.first;
  return count == 1 ? cover.of_first : cover.of_first + cover.of_last + (count - 2);
}

template <class T>
class Summing {
 public:
  explicit Summing(std::span<const double> background) : background_(background) {}

  void add(const AreaTile& tile, const AreaAxis& rows, const AreaAxis& columns, size_t from,
           size_t to, double* sums) {
    const auto across = covers(columns, 0, columns.cells, tile.x, tile.width);
    if (across.empty()) return;
    const size_t channels = background_.size();
    for (const Cover& down : covers(rows, from, to, tile.y, tile.height)) {
      add_down(tile, down, across.front().first * channels, across.back().last * channels);
      const double height = total(down);
      double* row = sums + down.cell * columns.cells * channels;
      for (const Cover& cover : across) {
        const double area = height * total(cover);
        for (size_t c = 0; c < channels; ++c) {
          double sum = 0;
          for (uint32_t x = cover.first; x < cover.last; ++x) {
            sum += cover.weight(x) * column_[x * channels + c];
          }
          row[cover.cell * channels + c] += sum - background_[c] * area;
        }
      }
    }
  }

 private:
  // Sums of rows of the tile, sample by sample of [from, to): those of whole rows as integers.
  void add_down(const AreaTile& tile, const Cover& down, size_t from, size_t to) {
    whole_.assign(to, 0);
    column_.assign(to, 0.0);
    for (uint32_t y = down.first; y < down.last; ++y) {
      const auto* row = reinterpret_cast<const T*>(tile.pixels + int64_t{y} * tile.pitch);
      const double weight = down.weight(y);
      if (weight == 1.0) {
        for (size_t i = from; i < to; ++i) whole_[i] += row[i];
      } else {
        for (size_t i = from; i < to; ++i) column_[i] += weight * row[i];
      }
    }
    for (size_t i = from; i < to; ++i) column_[i] += whole_[i];
  }

  std::span<const double> background_;
  std::vector<uint32_t> whole_;  // a tile has fewer than 2^16 rows of values below 2^16
  std::vector<double> column_;
};

template <class T>
void add_all(std::span<const AreaTile> tiles, std::span<const double> background,
             const AreaAxis& rows, const AreaAxis& columns, double* sums, unsigned workers) {
  const size_t pieces = (rows.cells + rows_at_a_time - 1) / rows_at_a_time;
  parallel_for(pieces, worker_count(workers, pieces), [&](size_t piece) {
    const size_t from = piece * rows_at_a_time;
    const size_t to = std::min(from + rows_at_a_time, rows.cells);
    Summing<T> summing(background);
    for (const AreaTile& tile : tiles) summing.add(tile, rows, columns, from, to, sums);
  });
}

}  // namespace

void add_area_sums(std::span<const AreaTile> tiles, PixelType type,
                   std::span<const double> background, const AreaAxis& rows,
                   const AreaAxis& columns, double* sums, unsigned workers) {
  const auto add = type == PixelType::uint8 ? add_all<uint8_t> : add_all<uint16_t>;
  add(tiles, background, rows, columns, sums, workers);
}

}  // namespace iac
