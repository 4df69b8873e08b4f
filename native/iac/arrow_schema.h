// The schema message of an Arrow IPC stream as an ArrowSchema of the C data interface. Every type
// of the format is known here, so that one unusual column never hides its neighbours.
#pragma once

#include <nanoarrow/nanoarrow.hpp>
#include <unordered_map>

#include "iac/bytes.h"

namespace iac {

struct TableSchema {
  nanoarrow::UniqueSchema root;  // a struct whose children are the columns
  // The dictionary id of each dictionary-encoded field, nested ones included.
  std::unordered_map<const ArrowSchema*, int64_t> dictionary_ids;

  // `schema` is the org.apache.arrow.flatbuf.Schema table of a verified message of `message_bytes`.
  // Throws Error.
  static TableSchema decode(const void* schema, uint64_t message_bytes);
};

}  // namespace iac
