#include "iac/codec/jpeg2000/planes.h"

#include <algorithm>
#include <cstring>

#include "iac/bytes.h"
#include "iac/codec/jpeg2000/reader.h"

namespace iac::j2k {
namespace {

// Rows are worked on in pieces that stay in the cache.
constexpr uint32_t piece = 512;

// Several samples of T written as one number.
template <class T>
using Word = std::conditional_t<sizeof(T) == 1, uint32_t, uint64_t>;

// Images stand one behind the other, wherever the one before ended: samples need not be aligned.
template <class T>
void put(std::byte* out, size_t sample, T value) {
  std::memcpy(out + sample * sizeof(T), &value, sizeof(T));
}

// Three channels by words of four samples, each overwriting the last sample of the one before.
template <class T>
void merge_three(const T (&lines)[max_components][piece], uint32_t width, std::byte* out) {
  constexpr unsigned bits = 8 * sizeof(T);
  for (size_t i = 0; i + 1 < width; ++i) {
    const Word<T> word = lines[0][i] | static_cast<Word<T>>(lines[1][i]) << bits |
                         static_cast<Word<T>>(lines[2][i]) << 2 * bits;
    std::memcpy(out + 3 * i * sizeof(T), &word, sizeof word);
  }
  for (uint32_t c = 0; c < 3; ++c) put(out, 3 * size_t{width - 1} + c, lines[c][width - 1]);
}

template <class T, uint32_t Count>
void merge(const T (&lines)[max_components][piece], uint32_t width, std::byte* out) {
  for (size_t i = 0; i < width; ++i) {
    for (uint32_t c = 0; c < Count; ++c) put(out, Count * i + c, lines[c][i]);
  }
}

template <class T>
void narrow(const int32_t* from, uint32_t width, Range range, std::byte* out) {
  for (size_t i = 0; i < width; ++i) {
    put(out, i, static_cast<T>(std::min(std::max(from[i], range.low), range.high)));
  }
}

// T is unsigned: signed samples are the same bits.
template <class T>
void interleave_as(const int32_t* const* channels, uint32_t count, uint32_t width, Range range,
                   std::byte* out) {
  if (count == 1) return narrow<T>(channels[0], width, range, out);
  T lines[max_components][piece];
  for (uint32_t at = 0; at < width; at += piece, out += size_t{piece} * count * sizeof(T)) {
    const uint32_t size = std::min(piece, width - at);
    for (uint32_t c = 0; c < count; ++c) {
      narrow<T>(channels[c] + at, size, range, reinterpret_cast<std::byte*>(lines[c]));
    }
    if (count == 2) merge<T, 2>(lines, size, out);
    if (count == 3) merge_three(lines, size, out);
    if (count == 4) merge<T, 4>(lines, size, out);
  }
}

template <class T>
void take_channel_as(const std::byte* pixels, uint32_t channels, uint32_t channel, uint32_t width,
                     int32_t* row) {
  pixels += channel * sizeof(T);
  for (size_t i = 0; i < width; ++i) row[i] = load<T>(pixels + i * channels * sizeof(T));
}

using Plane = std::vector<int32_t>;

bool is_sampled_alike(const Component& a, const Component& b) {
  return a.dx == b.dx && a.dy == b.dy;
}

// A bare codestream whose second and third component are smaller than the first can only be a
// luminance and two colour differences.
bool is_sycc(const Boxes& boxes, const Codestream& stream) {
  const auto& c = stream.components;
  if (c.size() < 3 || boxes.palette.has_value()) return false;
  if (boxes.colour == Colour::sycc) return true;
  return boxes.colour == Colour::unspecified && c.size() == 3 && is_sampled_alike(c[1], c[2]) &&
         !is_sampled_alike(c[0], c[1]);
}

// For each sample of a row or column of the first component, the sample of another that covers it.
std::vector<uint32_t> covering(uint32_t count, uint32_t start, uint32_t step, uint32_t other_start,
                               uint32_t other_step, uint32_t other_count) {
  std::vector<uint32_t> at(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t place = (uint64_t{start} + i) * step / other_step;
    at[i] = static_cast<uint32_t>(
        std::min<uint64_t>(place > other_start ? place - other_start : 0, other_count - 1));
  }
  return at;
}

Plane spread(const Component& first, const Component& other, const int32_t* samples) {
  const auto columns = covering(first.width, first.x0, first.dx, other.x0, other.dx, other.width);
  const auto rows = covering(first.height, first.y0, first.dy, other.y0, other.dy, other.height);
  Plane plane(size_t{first.width} * first.height);
  int32_t* out = plane.data();
  for (const uint32_t row : rows) {
    const int32_t* from = samples + size_t{row} * other.width;
    for (const uint32_t column : columns) *out++ = from[column];
  }
  return plane;
}

std::vector<Plane> look_up(const Palette& palette, const Component& component,
                           const int32_t* samples) {
  const size_t count = size_t{component.width} * component.height;
  const auto last = static_cast<int32_t>(palette.entries - 1);
  std::vector<Plane> planes;
  for (const auto& column : palette.columns) {
    Plane plane(count);
    for (size_t i = 0; i < count; ++i) plane[i] = column[std::clamp(samples[i], 0, last)];
    planes.push_back(std::move(plane));
  }
  return planes;
}

// Full range, as sYCC is: the coefficients of ITU-R BT.601.
void convert_sycc(std::vector<Plane>& planes, uint32_t precision) {
  const float middle = static_cast<float>(1U << (precision - 1));
  for (size_t i = 0; i < planes[0].size(); ++i) {
    const auto y = static_cast<float>(planes[0][i]);
    const float cb = static_cast<float>(planes[1][i]) - middle;
    const float cr = static_cast<float>(planes[2][i]) - middle;
    const auto rounded = [](float value) { return static_cast<int32_t>(value + 0.5F); };
    planes[0][i] = rounded(std::max(0.0F, y + 1.402F * cr));
    planes[1][i] = rounded(std::max(0.0F, y - 0.344136F * cb - 0.714136F * cr));
    planes[2][i] = rounded(std::max(0.0F, y + 1.772F * cb));
  }
}

}  // namespace

Range range_of(uint32_t precision, bool is_signed) {
  const int32_t span = int32_t{1} << (is_signed ? precision - 1 : precision);
  return {is_signed ? -span : 0, span - 1};
}

PixelType type_of(uint32_t precision, bool is_signed) {
  if (precision <= 8) return is_signed ? PixelType::int8 : PixelType::uint8;
  return is_signed ? PixelType::int16 : PixelType::uint16;
}

void interleave(const int32_t* const* channels, uint32_t count, uint32_t width, Range range,
                PixelType type, std::byte* pixels) {
  if (size_of(type) == 1) {
    interleave_as<uint8_t>(channels, count, width, range, pixels);
  } else {
    interleave_as<uint16_t>(channels, count, width, range, pixels);
  }
}

void take_channel(const std::byte* pixels, PixelType type, uint32_t channels, uint32_t channel,
                  uint32_t width, int32_t* row) {
  if (size_of(type) == 1) {
    take_channel_as<uint8_t>(pixels, channels, channel, width, row);
  } else {
    take_channel_as<uint16_t>(pixels, channels, channel, width, row);
  }
}

bool needs_conversion(const Boxes& boxes, const Codestream& stream) {
  const auto& c = stream.components;
  return boxes.palette.has_value() || !boxes.order.empty() || is_sycc(boxes, stream) ||
         !std::all_of(c.begin(), c.end(), [&](auto& each) { return is_sampled_alike(each, c[0]); });
}

std::vector<Plane> convert(const Boxes& boxes, const Codestream& stream,
                           const std::vector<const int32_t*>& components) {
  const auto& c = stream.components;
  std::vector<Plane> planes;
  if (boxes.palette.has_value()) {
    planes = look_up(*boxes.palette, c[0], components[0]);
  } else {
    for (size_t i = 0; i < c.size(); ++i) planes.push_back(spread(c[0], c[i], components[i]));
  }
  if (!boxes.order.empty()) {
    std::vector<Plane> ordered;
    for (const uint32_t channel : boxes.order) ordered.push_back(std::move(planes[channel]));
    planes = std::move(ordered);
  }
  if (is_sycc(boxes, stream)) convert_sycc(planes, c[0].precision);
  return planes;
}

}  // namespace iac::j2k
