// Opens any bytes as a pack and reads all that is in it.
//
// The input is a pack without its padding, so that nearly every byte of it matters: a prefix (see
// Input), the header's JSON, both tables, the data. The JSON is either taken as it is or given the
// layout that fits the rest, for otherwise few inputs would come past the header.

#include "iac/pack.h"

#include <cstdlib>
#include <nanoarrow/nanoarrow.hpp>
#include <string>
#include <vector>

#include "iac/error.h"
#include "tests/faults.h"

namespace {

using namespace iac;

struct Input {
  uint8_t literal;  // the JSON is the whole header
  uint8_t unused;
  uint16_t json_length, slides_length, index_length;
  uint32_t num_slides, num_records;
};

static_assert(sizeof(Input) == 16);

std::string file_of(const uint8_t* data, size_t size) {
  Input input{};
  if (size < sizeof input) return std::string(reinterpret_cast<const char*>(data), size);
  std::memcpy(&input, data, sizeof input);
  std::string rest(reinterpret_cast<const char*>(data) + sizeof input, size - sizeof input);
  const auto take = [&](size_t length) {
    std::string part = rest.substr(0, length);
    rest.erase(0, length);
    return part;
  };
  const std::string json = take(input.json_length), slides = take(input.slides_length),
                    index = take(input.index_length);
  std::string header;
  if ((input.literal & 1) == 0) {
    try {
      header = encode_header(
          json, {slides.size(), index.size(), rest.size(), input.num_slides, input.num_records});
    } catch (const Error&) {
    }
  }
  if (header.empty()) {
    const uint32_t words[] = {static_cast<uint32_t>(json.size()), format_version};
    header = std::string(magic);
    header.append(reinterpret_cast<const char*>(words), sizeof words);
    header += json;
    header.resize(header_bytes, '\0');
  }
  return header + slides + index + rest;
}

void require(bool holds) {
  if (!holds) std::abort();
}

// What is handed on must be valid to the last offset.
void walk(const Table& table) {
  for (size_t column = 0; column < table.num_columns(); ++column) {
    nanoarrow::UniqueArrayStream stream;
    table.export_stream({column}, stream.get());
    nanoarrow::UniqueSchema schema;
    require(stream->get_schema(stream.get(), schema.get()) == 0);
    while (true) {
      nanoarrow::UniqueArray array;
      if (stream->get_next(stream.get(), array.get()) != 0) {
        require(std::strlen(stream->get_last_error(stream.get())) > 0);
        break;  // one damaged column or batch hides no other
      }
      if (array->release == nullptr) break;
      nanoarrow::UniqueArrayView view;
      ArrowError error;
      require(ArrowArrayViewInitFromSchema(view.get(), schema.get(), &error) == 0);
      require(ArrowArrayViewSetArray(view.get(), array.get(), &error) == 0);
      require(ArrowArrayViewValidate(view.get(), NANOARROW_VALIDATION_LEVEL_FULL, &error) == 0);
    }
  }
}

void read_records(const Pack& pack) {
  std::vector<int64_t> rows;
  const int64_t records = pack.num_records(), count = std::min<int64_t>(records, 64);
  for (int64_t i = 0; i < count; ++i) rows.push_back(i * (records / count));
  rows.push_back(records);
  ReadOptions options;
  options.workers = 1;
  options.verify = false;
  options.on_error = OnError::null;
  options.limits = {1 << 20, 8 << 20};
  for (const bool decode : {false, true}) {
    options.decode = decode;
    try {
      const Batch batch = pack.read(rows, options);
      require(batch.count == rows.size() && !batch.failures.empty());
    } catch (const Error&) {
    }
  }
  rows.pop_back();
  require(pack.stamps(rows).size() == rows.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto pack =
        Pack::open(std::make_shared<tests::MemorySource>(file_of(data, size)), "fuzz.iac");
    walk(*pack->slides());
    walk(*pack->index());
    read_records(*pack);
  } catch (const Error&) {
  }
  return 0;
}
