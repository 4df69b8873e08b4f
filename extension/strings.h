// Writing the strings of a vector by hand. Calling DuckDB for each of them costs more than reading
// Parquet does; one call for all bytes, with the string headers written here, is several times
// faster.
#pragma once

#include <iac/error.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "handles.h"

namespace iac::duckdb {

// Strings up to this length lie in their header, zero-padded.
constexpr uint32_t inline_bytes = 12;

inline duckdb_string_t* strings_of(duckdb_vector vector) {
  return static_cast<duckdb_string_t*>(duckdb_vector_get_data(vector));
}

// The header of a string. `kept` is where the vector's own memory has the bytes; it is needed for
// those longer than inline_bytes only.
inline duckdb_string_t string_header(const char* bytes, uint32_t length, const char* kept) {
  duckdb_string_t header{};
  header.value.inlined.length = length;
  if (length <= inline_bytes) {
    if (length > 0) std::memcpy(header.value.inlined.inlined, bytes, length);
  } else {
    std::memcpy(header.value.pointer.prefix, bytes, sizeof header.value.pointer.prefix);
    header.value.pointer.ptr = const_cast<char*>(kept);
  }
  return header;
}

// The header of a string of up to inline_bytes, from memory with inline_bytes to read: without
// branches on the length.
inline duckdb_string_t short_string_header(const char* bytes, uint32_t length) {
  constexpr auto masks = [] {
    std::array<uint64_t, 9> masks{};
    for (size_t i = 0; i < 8; ++i) masks[i] = (uint64_t{1} << (8 * i)) - 1;
    masks[8] = ~uint64_t{0};
    return masks;
  }();
  uint64_t low;
  uint32_t high;
  std::memcpy(&low, bytes, sizeof low);
  std::memcpy(&high, bytes + sizeof low, sizeof high);
  low &= masks[length < 8 ? length : 8];
  high &= static_cast<uint32_t>(masks[length < 8 ? 0 : length - 8]);
  duckdb_string_t header;
  header.value.inlined.length = length;
  std::memcpy(header.value.inlined.inlined, &low, sizeof low);
  std::memcpy(header.value.inlined.inlined + sizeof low, &high, sizeof high);
  return header;
}

// Copies more than inline_bytes bytes into the memory of the vector and says where they are.
// Overwrites the string in `slot`.
inline const char* keep_bytes(duckdb_vector vector, idx_t slot, const char* bytes, size_t size) {
  duckdb_unsafe_vector_assign_string_element_len(vector, slot, bytes, size);
  return strings_of(vector)[slot].value.pointer.ptr;
}

// Writes the same text `count` times, kept once.
inline void fill_text(std::string_view text, size_t count, duckdb_vector vector) {
  if (count == 0) return;
  duckdb_unsafe_vector_assign_string_element_len(vector, 0, text.data(), text.size());
  duckdb_string_t* const texts = strings_of(vector);
  std::fill(texts + 1, texts + count, texts[0]);
}

inline uint32_t checked_length(uint64_t length) {
  if (length > UINT32_MAX) throw Error(Error::Kind::argument, "a value is longer than 4 GiB");
  return static_cast<uint32_t>(length);
}

// Writes `count` strings that lie one behind the other, between count + 1 rising offsets into
// `data`, which has `size` readable bytes. String i goes to slot(i).
//
// The headers come first, pointing into `data`: the large copy that follows leaves neither its
// source nor its target in the near caches, so that reading prefixes behind it costs three times as
// much.
template <class Offset, class Slot>
void write_strings(duckdb_vector vector, const char* data, uint64_t size, const Offset* offsets,
                   size_t count, Slot slot) {
  if (count == 0) return;
  duckdb_string_t* const out = strings_of(vector);
  bool any_long = false;
  for (size_t i = 0; i < count; ++i) {
    const char* bytes = data + offsets[i];
    const uint32_t length = checked_length(static_cast<uint64_t>(offsets[i + 1] - offsets[i]));
    if (length <= inline_bytes && static_cast<uint64_t>(offsets[i]) + inline_bytes <= size) {
      out[slot(i)] = short_string_header(bytes, length);
    } else {
      out[slot(i)] = string_header(bytes, length, bytes);
      any_long |= length > inline_bytes;
    }
  }
  if (!any_long) return;

  const auto all = static_cast<uint64_t>(offsets[count] - offsets[0]);
  if (all > UINT32_MAX) {  // more than one call can keep
    for (size_t i = 0; i < count; ++i) {
      duckdb_unsafe_vector_assign_string_element_len(
          vector, slot(i), data + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i]));
    }
    return;
  }
  const char* const first = data + offsets[0];
  const duckdb_string_t first_header = out[slot(0)];
  const char* const kept = keep_bytes(vector, slot(0), first, all);
  out[slot(0)] = first_header;
  for (size_t i = 0; i < count; ++i) {
    auto& header = out[slot(i)].value;
    if (header.inlined.length > inline_bytes) {
      header.pointer.ptr = const_cast<char*>(kept + (header.pointer.ptr - first));
    }
  }
}

// Writes `count` strings that lie anywhere in one piece, which is kept whole: text(i) to slot(i).
template <class Text, class Slot>
void write_strings_within(duckdb_vector vector, std::string_view piece, size_t count, Text text,
                          Slot slot) {
  duckdb_string_t* const out = strings_of(vector);
  size_t any_long = count;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view value = text(i);
    out[slot(i)] = string_header(value.data(), checked_length(value.size()), value.data());
    if (value.size() > inline_bytes) any_long = i;
  }
  if (any_long == count) return;
  if (piece.size() > UINT32_MAX) {  // more than one call can keep
    for (size_t i = 0; i < count; ++i) {
      const std::string_view value = text(i);
      if (value.size() > inline_bytes) keep_bytes(vector, slot(i), value.data(), value.size());
    }
    return;
  }
  const duckdb_string_t header = out[slot(any_long)];
  const char* const kept = keep_bytes(vector, slot(any_long), piece.data(), piece.size());
  out[slot(any_long)] = header;
  for (size_t i = 0; i < count; ++i) {
    auto& value = out[slot(i)].value;
    if (value.inlined.length <= inline_bytes) continue;
    value.pointer.ptr = const_cast<char*>(kept + (value.pointer.ptr - piece.data()));
  }
}

// Writes `count` strings from anywhere, text(i) to slot(i): those that do not fit into their
// headers are put one behind the other, so that DuckDB takes them in one piece. A string that
// follows itself is kept once.
template <class Text, class Slot>
void write_scattered_strings(duckdb_vector vector, size_t count, Text text, Slot slot) {
  struct LongString {
    size_t slot;
    size_t offset;
    std::string_view text;
  };
  std::string piece;
  std::vector<LongString> long_strings;
  duckdb_string_t* const out = strings_of(vector);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view value = text(i);
    const uint32_t length = checked_length(value.size());
    if (length <= inline_bytes) {
      out[slot(i)] = string_header(value.data(), length, nullptr);
      continue;
    }
    const bool again = !long_strings.empty() && long_strings.back().text.data() == value.data() &&
                       long_strings.back().text.size() == value.size();
    long_strings.push_back({slot(i), again ? long_strings.back().offset : piece.size(), value});
    if (!again) piece += value;
  }
  if (long_strings.empty()) return;
  const bool in_one_piece = piece.size() <= UINT32_MAX;
  const char* const kept =
      in_one_piece ? keep_bytes(vector, long_strings.front().slot, piece.data(), piece.size())
                   : nullptr;
  for (const auto& [slot, offset, text] : long_strings) {
    if (in_one_piece) {
      out[slot] = string_header(kept + offset, static_cast<uint32_t>(text.size()), kept + offset);
    } else {
      keep_bytes(vector, slot, piece.data() + offset, text.size());
    }
  }
}

}  // namespace iac::duckdb
