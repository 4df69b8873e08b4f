#include "iac/dicom/samples.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "iac/bytes.h"

namespace iac::dicom {
namespace {

// Calls `body` with a zero of the unsigned type of so many bytes.
template <class Body>
void with_unsigned(uint64_t size, Body body) {
  switch (size) {
    case 1:
      return body(uint8_t{});
    case 2:
      return body(uint16_t{});
    case 4:
      return body(uint32_t{});
    default:
      return body(uint64_t{});
  }
}

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

}  // namespace

bool is_integer(PixelType type) {
  return type != PixelType::float16 && type != PixelType::float32 && type != PixelType::float64;
}

bool is_signed(PixelType type) {
  return type == PixelType::int8 || type == PixelType::int16 || type == PixelType::int32 ||
         type == PixelType::int64;
}

void widen(std::byte* samples, uint64_t count, PixelType from, PixelType to) {
  with_unsigned(size_of(from), [&]<class Narrow>(Narrow) {
    with_unsigned(size_of(to), [&]<class Wide>(Wide) {
      using Signed = std::make_signed_t<Narrow>;
      // From the last on, none is written over before it is read.
      for (uint64_t i = count; i-- > 0;) {
        const auto narrow = load<Narrow>(samples + i * sizeof(Narrow));
        store(samples + i * sizeof(Wide), is_signed(from)
                                              ? static_cast<Wide>(static_cast<Signed>(narrow))
                                              : static_cast<Wide>(narrow));
      }
    });
  });
}

void clear_unused_bits(std::byte* samples, uint64_t count, PixelType type, int bits) {
  with_unsigned(size_of(type), [&]<class T>(T) {
    const int unused = static_cast<int>(sizeof(T)) * 8 - bits;
    if (unused == 0) return;
    const auto shift = [&]<class Number>(Number) {
      for (uint64_t i = 0; i < count; ++i) {
        std::byte* const at = samples + i * sizeof(T);
        const auto moved = static_cast<Number>(static_cast<T>(load<T>(at) << unused));
        store(at, static_cast<Number>(moved >> unused));
      }
    };
    if (is_signed(type)) return shift(std::make_signed_t<T>{});
    shift(T{});
  });
}

void swap_bytes(std::byte* samples, uint64_t count, uint64_t size) {
  for (uint64_t i = 0; i < count; ++i) std::reverse(samples + i * size, samples + (i + 1) * size);
}

void interleave(const std::byte* planes, uint64_t pixels, uint64_t channels, uint64_t size,
                std::byte* out) {
  with_unsigned(size, [&]<class T>(T) {
    for (uint64_t channel = 0; channel < channels; ++channel) {
      for (uint64_t i = 0; i < pixels; ++i) {
        const std::byte* const from = planes + (channel * pixels + i) * sizeof(T);
        store(out + (i * channels + channel) * sizeof(T), load<T>(from));
      }
    }
  });
}

void ybr_to_rgb(std::byte* samples, uint64_t pixels) {
  // As pydicom computes it: in floats, a product and its sum rounded together, which doubles do.
  constexpr float red_r = 1.402F, blue_b = 1.772F;
  constexpr auto green_b = static_cast<float>(-0.114 * 1.772 / 0.587),
                 green_r = static_cast<float>(-0.299 * 1.402 / 0.587);
  const auto plus = [](float sum, float a, float b) {
    return static_cast<float>(static_cast<double>(a) * b + sum);
  };
  const auto sample = [](float value) {
    return static_cast<std::byte>(std::clamp(std::floor(value + 0.5F), 0.F, 255.F));
  };
  for (std::byte* at = samples; at != samples + pixels * 3; at += 3) {
    const float y = load<uint8_t>(at), b = static_cast<float>(load<uint8_t>(at + 1)) - 128,
                r = static_cast<float>(load<uint8_t>(at + 2)) - 128;
    at[0] = sample(plus(y, r, red_r));
    at[1] = sample(plus(plus(y, b, green_b), r, green_r));
    at[2] = sample(plus(y, b, blue_b));
  }
}

void double_colours(const std::byte* pairs, uint64_t pixels, std::byte* out) {
  for (uint64_t i = 0; i < pixels; ++i) {
    const std::byte* const pair = pairs + i / 2 * 4;
    out[i * 3] = pair[i % 2];
    out[i * 3 + 1] = pair[2];
    out[i * 3 + 2] = pair[3];
  }
}

}  // namespace iac::dicom
