// The fixed header of a pack: 16 bytes of binary, then a JSON object, zero-filled to 64 KiB.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iac/source.h"

namespace iac {

constexpr uint64_t header_bytes = 65536;
constexpr uint32_t format_version = 2;
constexpr std::string_view magic{"IATROC\0\2", 8};

// A codec as the header names it. `params` is the text of a JSON object.
struct CodecSpec {
  std::string name = "none";
  std::string params = "{}";
};

struct RecordCodec {
  int64_t id = 0;
  CodecSpec codec;
};

// The shape of a fixed-record pack: row r is `dim` values of `dtype`, at r * record_bytes.
struct FixedShape {
  uint64_t dim = 0;
  std::string dtype;
  uint64_t record_bytes = 0;
};

struct Header {
  std::string text;  // the JSON as it stands in the file
  Segment slide_table, index_table, data;
  uint64_t num_slides = 0;
  uint64_t num_records = 0;
  std::string payload_type;  // empty when the header has none
  CodecSpec codec;
  bool names_codec = false;                // `codec` is in the header, not the default
  std::vector<RecordCodec> record_codecs;  // empty: every record has `codec`
  std::optional<FixedShape> fixed;

  // Reads and checks everything the format promises. Throws Error naming field and value.
  static Header read(const Source& source);
};

// What a writer puts into the header beside the caller's own fields.
struct Segments {
  uint64_t slide_table_length = 0, index_table_length = 0, data_length = 0;
  uint64_t num_slides = 0, num_records = 0;
};

// The 64 KiB of a header: the caller's JSON object with the layout fields set over it, keys
// sorted, two spaces of indentation, numbers as the format's first writer prints them.
// Throws Error when the object cannot be stored exactly or is too long.
std::string encode_header(std::string_view caller_json, const Segments& segments);

}  // namespace iac
