#include "iac/table.h"

#include <nanoarrow/ipc/flatcc_generated.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "iac/error.h"
#include "iac/remote.h"
#include "iac/workers.h"

#define FB(name) FLATBUFFERS_WRAP_NAMESPACE(org_apache_arrow_flatbuf, name)

namespace iac {
namespace {

// Re-throws what `body` throws with the table's name before it.
template <class Body>
auto naming(const std::string& table, Body body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.kind(), table + " table: " + error.reason(), error.code());
  }
}

}  // namespace

std::shared_ptr<const Table> Table::open(std::shared_ptr<const Source> source, Segment segment,
                                         std::string name, uint64_t expected_rows) {
  auto table = std::make_shared<Table>();
  table->source_ = std::move(source);
  table->name_ = std::move(name);
  naming(table->name_, [&] {
    table->scan(segment);
    if (static_cast<uint64_t>(table->num_rows_) != expected_rows) {
      throw Error(Error::Kind::pack, "has " + std::to_string(table->num_rows_) +
                                         " rows, the header says " + std::to_string(expected_rows));
    }
  });
  return table;
}

// A stream is a chain of messages: a length, a flatbuffer of that length, a body. It ends with a
// length of zero, or with the segment.
void Table::scan(Segment segment) {
  const uint64_t end = segment.offset + segment.length;
  uint64_t at = segment.offset;
  bool has_schema = false;
  // A message's metadata nearly always fits into the first read at it.
  const uint64_t read_ahead = source_->style().gap;
  std::vector<std::byte> ahead;
  uint64_t ahead_at = 0;
  const auto read = [&](uint64_t offset, MutableBytes out) {
    if (offset < ahead_at || offset + out.size() > ahead_at + ahead.size()) {
      ahead.resize(std::min(std::max<uint64_t>(read_ahead, out.size()), end - offset));
      ahead_at = offset;
      source_->read_at(offset, ahead);
    }
    std::memcpy(out.data(), ahead.data() + (offset - ahead_at), out.size());
  };

  while (end - at >= 4) {
    std::array<std::byte, 4> word;
    read(at, word);
    at += word.size();
    auto length = load<uint32_t>(word.data());
    if (length == 0xFFFFFFFF) {  // the marker that Arrow 0.15 put before the length
      if (end - at < 4) throw damaged_table("message is cut");
      read(at, word);
      at += word.size();
      length = load<uint32_t>(word.data());
    }
    if (length == 0) break;
    if (length > end - at) throw damaged_table("message is longer than its segment");

    Metadata metadata{std::make_unique<uint64_t[]>(length / 8 + 1)};
    read(at, MutableBytes(reinterpret_cast<std::byte*>(metadata.words.get()), length));
    at += length;
    if (FB(Message_verify_as_root(metadata.words.get(), length)) != flatcc_verify_ok) {
      throw damaged_table("message is not a valid flatbuffer");
    }
    const auto message = FB(Message_as_root(metadata.words.get()));
    const int64_t body = FB(Message_bodyLength(message));
    if (body < 0 || static_cast<uint64_t>(body) > end - at) {
      throw damaged_table("message body is longer than its segment");
    }
    if (!has_schema) {
      if (FB(Message_header_type(message)) != FB(MessageHeader_Schema)) {
        throw damaged_table("stream does not start with a schema");
      }
      schema_ = TableSchema::decode(FB(Message_header_get(message)), length);
      for (const auto& [field, id] : schema_.dictionary_ids) dictionary_fields_[id] = field;
      has_schema = true;
    } else {
      add_message(std::move(metadata), message, at, static_cast<uint64_t>(body));
    }
    at += static_cast<uint64_t>(body);
  }
  if (!has_schema) throw damaged_table("segment holds no Arrow stream");
}

void Table::add_message(Metadata metadata, const void* root, uint64_t body_offset,
                        uint64_t body_length) {
  const auto message = static_cast<FB(Message_table_t)>(root);
  const auto header = FB(Message_header_get(message));
  if (header == nullptr) throw damaged_table("empty message");
  BatchLocation location;
  location.body_offset = body_offset;
  location.body_length = body_length;
  location.version4 = FB(Message_version(message)) < FB(MetadataVersion_V5);
  const auto kind = FB(Message_header_type(message));
  if (kind == FB(MessageHeader_RecordBatch)) {
    const auto batch = static_cast<FB(RecordBatch_table_t)>(header);
    const int64_t rows = FB(RecordBatch_length(batch));
    if (rows < 0 || rows > (int64_t{1} << 40) - num_rows_)
      throw damaged_table("impossible number of rows");
    location.record_batch = batch;
    batches_.push_back({location, std::move(metadata), rows, num_rows_, dictionaries_.size()});
    num_rows_ += rows;
  } else if (kind == FB(MessageHeader_DictionaryBatch)) {
    const auto batch = static_cast<FB(DictionaryBatch_table_t)>(header);
    location.record_batch = FB(DictionaryBatch_data(batch));
    const int64_t id = FB(DictionaryBatch_id(batch));
    if (location.record_batch == nullptr) throw damaged_table("dictionary without data");
    dictionaries_.push_back(
        {location, std::move(metadata), id, FB(DictionaryBatch_isDelta(batch)) != 0});
  } else {
    throw damaged_table("unexpected kind of message in a table");
  }
}

std::optional<size_t> Table::find(std::string_view name) const {
  std::optional<size_t> found;
  for (size_t i = 0; i < num_columns(); ++i) {
    if (field(i).name != name) continue;
    if (found.has_value()) {
      throw Error(Error::Kind::pack,
                  name_ + " table: two columns are called '" + std::string(name) + "'");
    }
    found = i;
  }
  return found;
}

std::pair<size_t, int64_t> Table::locate(int64_t row) const {
  const auto behind = std::upper_bound(batches_.begin(), batches_.end(), row,
                                       [](int64_t r, const Batch& b) { return r < b.first_row; });
  const auto batch = static_cast<size_t>(behind - batches_.begin()) - 1;
  return {batch, row - batches_[batch].first_row};
}

void Table::Cache::evict() {
  while (bytes > limit) {
    const auto oldest = std::min_element(
        columns.begin(), columns.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
    bytes -= oldest->second.column->bytes();
    columns.erase(oldest);
  }
}

uint64_t Table::cached_bytes() const {
  Cache& cache = *cache_;
  const std::lock_guard lock(cache.mutex);
  return cache.bytes;
}

void Table::limit_cache(uint64_t bytes, Keep keep) const {
  Cache& cache = *cache_;
  const std::lock_guard lock(cache.mutex);
  cache.limit = bytes;
  cache.keep = keep;
  cache.evict();
}

// A column above the limit is read anew each time.
template <class Read>
std::shared_ptr<const Column> Table::cached(std::pair<size_t, size_t> key, Read read) const {
  Cache& cache = *cache_;
  {
    const std::lock_guard lock(cache.mutex);
    if (const auto found = cache.columns.find(key); found != cache.columns.end()) {
      found->second.last_use = ++cache.clock;
      return found->second.column;
    }
  }
  std::shared_ptr<const Column> column = read();
  const std::lock_guard lock(cache.mutex);
  if (column->bytes() > cache.limit) return column;
  if (cache.keep == Keep::when_read_again && cache.seen.insert(key).second) return column;
  const auto [entry, added] = cache.columns.try_emplace(key, Cached{column, ++cache.clock});
  if (!added) return entry->second.column;  // another thread read it meanwhile
  cache.bytes += column->bytes();
  cache.evict();
  return column;
}

std::shared_ptr<const Column> Table::column(size_t column, size_t batch) const {
  if (source_->style().expensive()) return columns({&column, 1}, batch).front();
  return naming(name_, [&] { return read_column(*source_, column, batch); });
}

std::vector<std::shared_ptr<const Column>> Table::columns(std::span<const size_t> columns,
                                                          size_t batch) const {
  const auto read = [&] {
    std::vector<Segment> ranges;
    if (source_->style().expensive()) {
      const Batch& whole = batches_[batch];
      for (const size_t column : columns) {
        if (is_cached({column, batch})) continue;
        locate_buffers(whole.location, place(column, whole), field(column), ranges);
        locate_dictionaries(field(column), whole.dictionaries_before, ranges);
      }
    }
    const Prefetched source(*source_, std::move(ranges));
    std::vector<std::shared_ptr<const Column>> found(columns.size());
    parallel_for(columns.size(), worker_count(0, columns.size()),
                 [&](size_t i) { found[i] = read_column(source, columns[i], batch); });
    return found;
  };
  return naming(name_, [&] { return source_->confirmed(read); });
}

BatchCursor Table::place(size_t column, const Batch& batch) const {
  BatchCursor at;
  for (size_t i = 0; i < column; ++i) at = at.behind(field(i), batch.location);
  return at;
}

bool Table::is_cached(std::pair<size_t, size_t> key) const {
  Cache& cache = *cache_;
  const std::lock_guard lock(cache.mutex);
  return cache.columns.contains(key);
}

std::shared_ptr<const Column> Table::read_column(const Source& source, size_t column,
                                                 size_t batch) const {
  return cached({column, batch}, [&] {
    const Batch& found = batches_[batch];
    auto read =
        Column::read(source, found.location, place(column, found), field(column), schema_,
                     [&](int64_t id) { return dictionary(source, id, found.dictionaries_before); });
    if (read->length() != found.rows) {
      throw damaged_table("column '" + std::string(field(column).name) +
                          "' and its record batch differ in length");
    }
    return read;
  });
}

// The last message of a dictionary before the others.
size_t Table::dictionary_message(int64_t id, size_t messages_before) const {
  size_t index = messages_before;
  while (index > 0 && dictionaries_[index - 1].id != id) --index;
  if (index == 0) throw damaged_table("dictionary is missing from the stream");
  return index - 1;
}

void Table::locate_dictionaries(const ArrowSchema& field, size_t messages_before,
                                std::vector<Segment>& out) const {
  for (int64_t i = 0; i < field.n_children; ++i) {
    locate_dictionaries(*field.children[i], messages_before, out);
  }
  if (field.dictionary == nullptr) return;
  const size_t index = dictionary_message(schema_.dictionary_ids.at(&field), messages_before);
  if (is_cached({num_columns() + index, 0})) return;
  const BatchLocation& location = dictionaries_[index].location;
  out.push_back({location.body_offset, location.body_length});
  locate_dictionaries(*field.dictionary, index, out);
}

std::shared_ptr<const Column> Table::dictionary(const Source& source, int64_t id,
                                                size_t messages_before) const {
  const size_t index = dictionary_message(id, messages_before);
  const DictionaryMessage& message = dictionaries_[index];
  if (message.is_delta) {
    throw Error(Error::Kind::pack,
                "delta dictionaries are not supported, rewrite the table with whole dictionaries");
  }
  // A dictionary may hold dictionaries in turn, but only ones that stand before it.
  return cached({num_columns() + index, 0}, [&] {
    return Column::read(source, message.location, {}, *dictionary_fields_.at(id)->dictionary,
                        schema_, [&](int64_t inner) { return dictionary(source, inner, index); });
  });
}

// Calls part(batch, first row in it, rows, memory) for each batch that has some of the values.
template <class Part>
void Table::for_each_part(const Values& wanted, Part part) const {
  MutableBytes out = wanted.out;
  for (int64_t done = 0; done < wanted.count;) {
    const auto [batch, first] = locate(wanted.row + done);
    const int64_t rows = std::min(wanted.count - done, batches_[batch].rows - first);
    const size_t bytes = static_cast<size_t>(rows) * wanted.width;
    part(batch, first, out.first(bytes));
    out = out.subspan(bytes);
    done += rows;
  }
}

void Table::read_values(std::span<const Values> wanted) const {
  naming(name_, [&] {
    struct Part {
      Segment plain;  // offset 0: not to be had without the whole column
      size_t column, batch;
      uint64_t skip;
      MutableBytes out;
    };
    std::vector<Part> parts;
    std::vector<Segment> ranges;
    for (const Values& values : wanted) {
      for_each_part(values, [&](size_t index, int64_t first, MutableBytes out) {
        const Batch& batch = batches_[index];
        const auto skip = static_cast<uint64_t>(first) * values.width;
        const PlainValues plain = locate_plain_values(batch.location, place(values.column, batch),
                                                      batch.rows, values.width);
        Segment where;
        if (plain.offset > 0) where = {plain.offset + skip, out.size()};
        parts.push_back({where, values.column, index, skip, out});
        ranges.push_back(where);
      });
    }
    const Prefetched source(*source_, std::move(ranges));
    for (const Part& part : parts) {
      if (part.plain.offset > 0) {
        source.read_at(part.plain.offset, part.out);
      } else {
        const auto values = read_column(source, part.column, part.batch);
        const auto& buffer = values->view().buffer_views[1];
        std::memcpy(part.out.data(), buffer.data.as_uint8 + part.skip, part.out.size());
      }
    }
  });
}

void Table::require_no_nulls(size_t column) const {
  naming(name_, [&] {
    for (const Batch& batch : batches_) {
      const BatchCursor at = place(column, batch);
      if (locate_plain_values(batch.location, at, batch.rows, 0).null_count != 0) {
        throw Error(Error::Kind::pack,
                    "column '" + std::string(field(column).name) + "' has nulls, expected none");
      }
    }
  });
}

namespace {

struct Stream {
  std::shared_ptr<const Table> table;
  std::vector<size_t> columns;
  size_t next_batch = 0;
  std::string error;

  // Runs `body`, turning what it throws into the errno and text that the interface wants.
  template <class Body>
  int guard(Body body) {
    try {
      body();
      return 0;
    } catch (const Error& failed) {
      error = failed.what();
      return failed.code() != 0 ? EIO : EINVAL;
    } catch (const std::exception& failed) {
      error = failed.what();
      return EINVAL;
    }
  }
};

void check_allocation(ArrowErrorCode code) {
  if (code != NANOARROW_OK) throw std::bad_alloc();
}

void copy_schema(const Stream& stream, ArrowSchema* out) {
  nanoarrow::UniqueSchema chosen;
  ArrowSchemaInit(chosen.get());
  const ArrowSchema& all = stream.table->schema();
  const auto count = static_cast<int64_t>(stream.columns.size());
  check_allocation(ArrowSchemaSetTypeStruct(chosen.get(), count));
  chosen->flags = 0;
  check_allocation(ArrowSchemaSetMetadata(chosen.get(), all.metadata));
  for (size_t i = 0; i < stream.columns.size(); ++i) {
    ArrowSchemaRelease(chosen->children[i]);
    check_allocation(ArrowSchemaDeepCopy(all.children[stream.columns[i]], chosen->children[i]));
  }
  ArrowSchemaMove(chosen.get(), out);
}

void next_batch(Stream& stream, ArrowArray* out) {
  *out = ArrowArray{};
  if (stream.next_batch == stream.table->num_batches()) return;  // released array: the end
  const size_t batch = stream.next_batch;
  nanoarrow::UniqueArray array;
  check_allocation(ArrowArrayInitFromType(array.get(), NANOARROW_TYPE_STRUCT));
  check_allocation(
      ArrowArrayAllocateChildren(array.get(), static_cast<int64_t>(stream.columns.size())));
  const auto columns = stream.table->columns(stream.columns, batch);
  for (size_t i = 0; i < columns.size(); ++i) export_column(columns[i], array->children[i]);
  array->length = stream.table->batch_rows(batch);
  array->null_count = 0;
  ++stream.next_batch;
  ArrowArrayMove(array.get(), out);
}

}  // namespace

void Table::export_stream(std::vector<size_t> columns, ArrowArrayStream* out) const {
  auto stream = std::make_unique<Stream>();
  stream->table = shared_from_this();
  stream->columns = std::move(columns);
  out->get_schema = [](ArrowArrayStream* s, ArrowSchema* schema) {
    auto& stream = *static_cast<Stream*>(s->private_data);
    return stream.guard([&] { copy_schema(stream, schema); });
  };
  out->get_next = [](ArrowArrayStream* s, ArrowArray* array) {
    auto& stream = *static_cast<Stream*>(s->private_data);
    return stream.guard([&] { next_batch(stream, array); });
  };
  out->get_last_error = [](ArrowArrayStream* s) {
    return static_cast<Stream*>(s->private_data)->error.c_str();
  };
  out->release = [](ArrowArrayStream* s) {
    delete static_cast<Stream*>(s->private_data);
    s->release = nullptr;
  };
  out->private_data = stream.release();
}

}  // namespace iac
