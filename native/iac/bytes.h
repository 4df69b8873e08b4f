// Views of memory, and integers read from it without regard to alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace iac {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

inline Bytes as_bytes(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

// Everything on disk is little-endian, and so is every machine this builds on (see platform.cpp).
template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace iac
