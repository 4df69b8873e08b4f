// Small packs, tables and payloads for the tests.
#pragma once

#include <nanoarrow/nanoarrow_ipc.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nanoarrow/nanoarrow.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "iac/checksum.h"
#include "iac/codec/codec.h"
#include "iac/header.h"
#include "iac/pack.h"
#include "tests/faults.h"

namespace iac::tests {

namespace fs = std::filesystem;

inline Bytes bytes_of(std::string_view text) { return as_bytes(text.data(), text.size()); }

inline std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("no file " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// A stream kept under native/tests/data, see make_streams.py.
inline std::string kept_stream(const std::string& name) {
  return read_file(fs::path(IAC_TEST_DATA) / (name + ".arrows"));
}

// A folder that is gone with the test.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "iac-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  // Names in it, hidden ones too.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(path_))
      found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  fs::path path_;
};

inline void require(ArrowErrorCode code) {
  if (code != NANOARROW_OK) throw std::runtime_error("nanoarrow refuses");
}

// A column of integers, or of text.
struct TestColumn {
  std::string name;
  ArrowType type = NANOARROW_TYPE_INT64;
  std::vector<std::optional<uint64_t>> numbers;
  std::vector<std::string> texts = {};

  size_t rows() const { return texts.empty() ? numbers.size() : texts.size(); }
};

template <class Numbers>
TestColumn number_column(std::string name, ArrowType type, const Numbers& numbers) {
  return {std::move(name), type, {numbers.begin(), numbers.end()}};
}

// The columns as an Arrow IPC stream, cut into batches of `batch_rows`.
inline std::string stream_of(const std::vector<TestColumn>& columns, size_t batch_rows = SIZE_MAX) {
  nanoarrow::UniqueSchema schema;
  ArrowSchemaInit(schema.get());
  require(ArrowSchemaSetTypeStruct(schema.get(), static_cast<int64_t>(columns.size())));
  for (size_t i = 0; i < columns.size(); ++i) {
    require(ArrowSchemaSetType(schema->children[i], columns[i].type));
    require(ArrowSchemaSetName(schema->children[i], columns[i].name.c_str()));
  }
  nanoarrow::UniqueBuffer bytes;
  ArrowIpcOutputStream output;
  require(ArrowIpcOutputStreamInitBuffer(&output, bytes.get()));
  ArrowIpcWriter writer;
  require(ArrowIpcWriterInit(&writer, &output));
  ArrowError error;
  require(ArrowIpcWriterWriteSchema(&writer, schema.get(), &error));
  const size_t rows = columns.empty() ? 0 : columns.front().rows();
  for (size_t first = 0; first < rows;) {
    const size_t end = std::min(rows, batch_rows < rows ? first + batch_rows : rows);
    nanoarrow::UniqueArray array;
    require(ArrowArrayInitFromSchema(array.get(), schema.get(), &error));
    require(ArrowArrayStartAppending(array.get()));
    for (size_t row = first; row < end; ++row) {
      for (size_t i = 0; i < columns.size(); ++i) {
        const TestColumn& column = columns[i];
        ArrowArray* child = array->children[i];
        if (!column.texts.empty()) {
          const ArrowStringView text{column.texts[row].data(),
                                     static_cast<int64_t>(column.texts[row].size())};
          require(ArrowArrayAppendString(child, text));
        } else if (!column.numbers[row].has_value()) {
          require(ArrowArrayAppendNull(child, 1));
        } else if (column.type == NANOARROW_TYPE_UINT64) {
          require(ArrowArrayAppendUInt(child, *column.numbers[row]));
        } else {
          require(ArrowArrayAppendInt(child, static_cast<int64_t>(*column.numbers[row])));
        }
      }
      require(ArrowArrayFinishElement(array.get()));
    }
    require(ArrowArrayFinishBuildingDefault(array.get(), &error));
    nanoarrow::UniqueArrayView view;
    require(ArrowArrayViewInitFromSchema(view.get(), schema.get(), &error));
    require(ArrowArrayViewSetArray(view.get(), array.get(), &error));
    require(ArrowIpcWriterWriteArrayView(&writer, view.get(), &error));
    first = end;
  }
  require(ArrowIpcWriterWriteArrayView(&writer, nullptr, &error));
  std::string text(reinterpret_cast<const char*>(bytes->data),
                   static_cast<size_t>(bytes->size_bytes));
  ArrowIpcWriterReset(&writer);
  return text;
}

// The parts of a pack, to be changed before they are put together.
struct PackParts {
  std::string header = "{}";
  std::string slides =
      stream_of({number_column("slide_idx", NANOARROW_TYPE_INT64, std::vector{0u})});
  std::string index;
  std::string data;
  uint64_t num_slides = 1;
  uint64_t num_records = 0;

  std::string bytes() const {
    return encode_header(header,
                         {slides.size(), index.size(), data.size(), num_slides, num_records}) +
           slides + index + data;
  }
};

// What an index says of its records.
struct TestIndex {
  std::vector<uint64_t> offsets, lengths, crc32s, codec_ids;

  void add(uint64_t offset, uint64_t length, uint64_t crc) {
    offsets.push_back(offset);
    lengths.push_back(length);
    crc32s.push_back(crc);
  }
  std::vector<TestColumn> columns() const {
    std::vector<TestColumn> all{number_column("offset", NANOARROW_TYPE_UINT64, offsets),
                                number_column("length", NANOARROW_TYPE_UINT32, lengths)};
    if (!crc32s.empty()) all.push_back(number_column("crc32", NANOARROW_TYPE_UINT32, crc32s));
    if (!codec_ids.empty()) {
      all.push_back(number_column("codec_id", NANOARROW_TYPE_UINT8, codec_ids));
    }
    return all;
  }
};

// A pack of these stored bytes, one behind the other.
inline PackParts parts_of(const std::vector<std::string>& stored, std::string header = "{}",
                          size_t batch_rows = SIZE_MAX, std::vector<uint64_t> codec_ids = {}) {
  PackParts parts;
  TestIndex index;
  index.codec_ids = std::move(codec_ids);
  for (const std::string& record : stored) {
    index.add(parts.data.size(), record.size(), crc32(bytes_of(record)));
    parts.data += record;
  }
  parts.header = std::move(header);
  parts.index = stream_of(index.columns(), batch_rows);
  parts.num_records = stored.size();
  return parts;
}

inline const ByteCodec& byte_codec(const Codec& codec) {
  return dynamic_cast<const ByteCodec&>(codec);
}

inline std::string encoded(const Codec& codec, std::string_view object) {
  std::vector<std::byte> out;
  byte_codec(codec).encode(bytes_of(object), out);
  return text_of(out);
}

inline std::shared_ptr<const Pack> open_bytes(std::string bytes) {
  return Pack::open(std::make_shared<MemorySource>(std::move(bytes)), "test.iac");
}

inline std::string record_of(const Batch& batch, size_t i) {
  const auto* offsets = reinterpret_cast<const uint64_t*>(batch.offsets.data());
  return text_of({batch.data.data() + offsets[i], offsets[i + 1] - offsets[i]});
}

inline std::vector<std::string> records_of(const Batch& batch) {
  std::vector<std::string> records;
  for (size_t i = 0; i < batch.count; ++i) records.push_back(record_of(batch, i));
  return records;
}

inline bool is_valid(const Batch& batch, size_t i) {
  return batch.validity.empty() || (batch.validity[i / 8] >> (i % 8) & 1) != 0;
}

// Bytes that no codec can shrink.
inline std::string noise(std::mt19937_64& random, size_t size) {
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// The kind and reason of the Error that `body` throws; nothing when it throws none.
struct Thrown {
  bool any = false;
  Error::Kind kind = Error::Kind::pack;
  std::string text;
  int code = 0;
  int64_t row = -1;
};

template <class Body>
Thrown thrown_by(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return {true, error.kind(), error.what(), error.code(), error.row()};
  }
  return {};
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace iac::tests
