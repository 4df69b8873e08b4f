#include "iac/codec/j2k_boxes.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "iac/codec/j2k_reader.h"

namespace iac::j2k {
namespace {

constexpr uint32_t type_of(const char (&name)[5]) {
  uint32_t type = 0;
  for (int i = 0; i < 4; ++i) type = type << 8 | static_cast<unsigned char>(name[i]);
  return type;
}

constexpr std::array<unsigned char, 12> signature{0,   0,   0,    12,   'j',  'P',
                                                  ' ', ' ', 0x0D, 0x0A, 0x87, 0x0A};

bool starts_with(Bytes payload, std::span<const unsigned char> start) {
  return payload.size() >= start.size() &&
         std::memcmp(payload.data(), start.data(), start.size()) == 0;
}

struct Box {
  uint32_t type;
  Bytes content;
};

Box next_box(Reader& reader) {
  uint64_t length = reader.u32();
  const uint32_t type = reader.u32();
  uint64_t header = 8;
  if (length == 1) {
    length = reader.u64();
    header = 16;
  }
  if (length == 0) return {type, reader.take(reader.left())};
  if (length < header) throw bad("a box has an impossible length");
  if (length - header > reader.left()) throw bad("a box reaches past the end of the payload");
  return {type, reader.take(length - header)};
}

Colour read_colour(Bytes content) {
  Reader reader(content);
  const uint32_t method = reader.u8();
  reader.take(2);
  if (method != 1) return Colour::given;  // an ICC profile, which is not applied
  const uint32_t space = reader.u32();
  switch (space) {
    case 16:  // sRGB
    case 17:  // gray
    case 20:  // e-sRGB
    case 21:  // ROMM-RGB
      return Colour::given;
    case 18:
      return Colour::sycc;
    default:
      throw bad("colour space " + std::to_string(space) + " is not supported");
  }
}

Palette read_palette(Bytes content) {
  Reader reader(content);
  Palette palette;
  palette.entries = reader.u16();
  const uint32_t columns = reader.u8();
  if (palette.entries == 0 || palette.entries > 1024)
    throw bad("palette has no or too many entries");
  if (columns == 0 || columns > 4) {
    throw bad("palette of " + std::to_string(columns) + " columns is not supported");
  }
  for (uint32_t c = 0; c < columns; ++c) {
    const uint32_t depth = reader.u8();
    if (depth > 15 || (c > 0 && depth + 1 != palette.precision)) {
      throw bad("palette is not of unsigned columns of equal depth up to 16 bits");
    }
    palette.precision = depth + 1;
  }
  palette.columns.assign(columns, std::vector<int32_t>(palette.entries));
  const int32_t most = static_cast<int32_t>((1U << palette.precision) - 1);
  for (uint32_t i = 0; i < palette.entries; ++i) {
    for (auto& column : palette.columns) {
      column[i] = static_cast<int32_t>(palette.precision > 8 ? reader.u16() : reader.u8());
      if (column[i] > most) throw bad("palette has a colour above its depth");
    }
  }
  return palette;
}

// Only the usual mapping is taken: the palette's columns in order, all from the first component.
void check_mapping(Bytes content, size_t columns) {
  Reader reader(content);
  bool usual = content.size() == columns * 4;
  for (uint32_t i = 0; usual && i < columns; ++i) {
    usual = reader.u16() == 0 && reader.u8() == 1 && reader.u8() == i;
  }
  if (!usual) throw bad("the mapping of components to palette columns is not supported");
}

// Colours in the order of their association, then what is not colour.
std::vector<uint32_t> read_order(Bytes content) {
  Reader reader(content);
  const uint32_t count = reader.u16();
  if (count == 0 || count > 4) throw bad("channel definition of too many channels");
  std::vector<std::pair<uint32_t, uint32_t>> ranked;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t channel = reader.u16(), type = reader.u16(), association = reader.u16();
    const bool is_colour = type == 0 && association >= 1 && association <= count;
    ranked.emplace_back(is_colour ? association : 0x10000 + channel, channel);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<uint32_t> order;
  for (const auto& [rank, channel] : ranked) order.push_back(channel);
  std::vector<uint32_t> sorted = order, natural(count);
  std::sort(sorted.begin(), sorted.end());
  std::iota(natural.begin(), natural.end(), 0);
  if (sorted != natural) throw bad("channel definition does not name each channel once");
  if (order == natural) order.clear();
  return order;
}

void read_header(Bytes content, Boxes& boxes) {
  std::optional<Bytes> mapping;
  bool has_colour = false;
  Reader reader(content);
  while (reader.left() > 0) {
    const Box box = next_box(reader);
    if (box.type == type_of("colr") && !has_colour) {  // further ones are alternatives
      boxes.colour = read_colour(box.content);
      has_colour = true;
    } else if (box.type == type_of("pclr")) {
      boxes.palette = read_palette(box.content);
    } else if (box.type == type_of("cmap")) {
      mapping = box.content;
    } else if (box.type == type_of("cdef")) {
      boxes.order = read_order(box.content);
    }
  }
  if (boxes.palette.has_value() != mapping.has_value()) {
    throw bad("a palette and its mapping come together, one is missing");
  }
  if (mapping.has_value()) check_mapping(*mapping, boxes.palette->columns.size());
}

}  // namespace

Boxes read_boxes(Bytes payload) {
  Boxes boxes;
  static constexpr std::array<unsigned char, 4> start{0xFF, 0x4F, 0xFF, 0x51};
  if (starts_with(payload, start)) {
    boxes.codestream = payload;
    return boxes;
  }
  if (!starts_with(payload, signature)) throw bad("payload is neither a codestream nor a JP2 file");
  Reader reader(payload);
  while (reader.left() > 0) {
    const Box box = next_box(reader);
    if (box.type == type_of("jp2h")) {
      read_header(box.content, boxes);
    } else if (box.type == type_of("jp2c")) {
      if (!starts_with(box.content, start)) throw bad("no codestream where the file has one");
      boxes.codestream = box.content;
      return boxes;
    }
  }
  throw bad("the file has no codestream");
}

}  // namespace iac::j2k
