#include "iac/layout.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <string>
#include <unordered_set>

#include "iac/error.h"

namespace iac {

// Blocks read at once: 4 MiB, and reads enough for an expensive source to do together.
static constexpr size_t max_blocks_a_load = 256;
// The codec of a record whose codec_id the header does not list.
static constexpr uint8_t unknown_codec = 255;

Layout::Layout(std::shared_ptr<const Table> index, const Header& header)
    : index_(std::move(index)) {
  const bool has_offset = index_->find("offset").has_value();
  const bool has_length = index_->find("length").has_value();
  // A matrix may have an index column of its own called offset, but then no length beside it.
  if (header.fixed.has_value() && !(has_offset && has_length)) {
    kind_ = Kind::fixed;
    record_bytes_ = header.fixed->record_bytes;
    return;
  }
  if (!has_offset) return;
  if (!has_length) {
    throw Error(Error::Kind::pack, "index table has a column 'offset' but no column 'length'");
  }
  kind_ = Kind::variable;
  offset_ = find("offset", {NANOARROW_TYPE_UINT64, NANOARROW_TYPE_INT64});
  length_ = find("length", {NANOARROW_TYPE_UINT32, NANOARROW_TYPE_INT32});
  crc32_ = find("crc32", {NANOARROW_TYPE_UINT32, NANOARROW_TYPE_INT32});
  if (!header.record_codecs.empty()) {
    codec_id_ = find("codec_id", {NANOARROW_TYPE_UINT8, NANOARROW_TYPE_INT8, NANOARROW_TYPE_UINT16,
                                  NANOARROW_TYPE_INT16, NANOARROW_TYPE_UINT32, NANOARROW_TYPE_INT32,
                                  NANOARROW_TYPE_UINT64, NANOARROW_TYPE_INT64});
    record_codecs_ = header.record_codecs;
    if (record_codecs_.size() >= unknown_codec) {
      throw Error(Error::Kind::pack, "header field record_codecs has more than 254 codecs");
    }
  }
}

Layout::LayoutColumn Layout::find(const char* name, std::initializer_list<ArrowType> types) const {
  const auto column = index_->find(name);
  if (!column.has_value()) return {};
  ArrowSchemaView view;
  ArrowError error;
  const ArrowSchema& field = index_->field(*column);
  const bool readable = ArrowSchemaViewInit(&view, &field, &error) == NANOARROW_OK;
  if (!readable || std::find(types.begin(), types.end(), view.type) == types.end()) {
    throw Error(Error::Kind::pack, std::string("index table: column '") + name + "' has type " +
                                       (readable ? ArrowTypeString(view.type) : field.format) +
                                       ", expected " + ArrowTypeString(*types.begin()));
  }
  index_->require_no_nulls(*column);
  const bool is_signed = view.type == NANOARROW_TYPE_INT8 || view.type == NANOARROW_TYPE_INT16 ||
                         view.type == NANOARROW_TYPE_INT32 || view.type == NANOARROW_TYPE_INT64;
  return {*column, static_cast<size_t>(view.layout.element_size_bits[1] / 8), true, is_signed};
}

uint8_t Layout::codec_position(int64_t id) const {
  for (size_t i = 0; i < record_codecs_.size(); ++i) {
    if (record_codecs_[i].id == id) return static_cast<uint8_t>(i);
  }
  return unknown_codec;
}

void Layout::load(std::span<const int64_t> numbers, Blocks& out) const {
  struct Run {  // of neighbouring blocks
    int64_t first, rows;
  };
  std::vector<Run> runs;
  for (const int64_t number : numbers) {
    const int64_t first = number * block_rows;
    const int64_t rows = std::min(block_rows, index_->num_rows() - first);
    if (!runs.empty() && runs.back().first + runs.back().rows == first) {
      runs.back().rows += rows;
    } else {
      runs.push_back({first, rows});
    }
  }
  std::vector<std::shared_ptr<Block>> blocks;
  for (size_t i = 0; i < numbers.size(); ++i) blocks.push_back(std::make_shared<Block>());

  // All values of a column lie one behind the other, as the blocks do.
  const size_t rows = std::accumulate(runs.begin(), runs.end(), size_t{0}, [](size_t sum, Run run) {
    return sum + static_cast<size_t>(run.rows);
  });
  const std::array columns{&offset_, &length_, &crc32_, &codec_id_};
  std::array<std::vector<std::byte>, columns.size()> memory;
  std::vector<Table::Values> wanted;
  for (size_t i = 0; i < columns.size(); ++i) {
    const LayoutColumn& column = *columns[i];
    if (!column.present) continue;
    memory[i].resize(rows * column.width);
    MutableBytes rest = memory[i];
    for (const Run& run : runs) {
      const size_t bytes = static_cast<size_t>(run.rows) * column.width;
      wanted.push_back({column.column, run.first, run.rows, column.width, rest.first(bytes)});
      rest = rest.subspan(bytes);
    }
  }
  index_->read_values(wanted);

  const auto fill = [&](size_t i, auto member, auto convert) {
    const LayoutColumn& column = *columns[i];
    if (!column.present) return;
    // Only the table's last block may be shorter, and it is the last here.
    for (size_t row = 0; row < rows; ++row) {
      uint64_t value = 0;
      std::memcpy(&value, memory[i].data() + row * column.width, column.width);
      ((*blocks[row / block_rows]).*member)[row % block_rows] = convert(value);
    }
  };
  const auto same = [](uint64_t value) { return value; };
  const auto narrow = [](uint64_t value) { return static_cast<uint32_t>(value); };
  fill(0, &Block::offset, same);
  fill(1, &Block::length, narrow);
  fill(2, &Block::crc32, narrow);
  // Values come zero-extended, signed ones get their sign back.
  const size_t unused = codec_id_.is_signed ? 64 - codec_id_.width * 8 : 0;
  fill(3, &Block::codec, [this, unused](uint64_t id) {
    return codec_position(static_cast<int64_t>(id << unused) >> unused);
  });
  for (size_t i = 0; i < numbers.size(); ++i) out[numbers[i]] = blocks[i];
}

Layout::Blocks Layout::blocks_for(std::span<const int64_t> rows) const {
  std::unordered_set<int64_t> distinct;
  for (const int64_t row : rows) distinct.insert(row / block_rows);
  std::vector<int64_t> needed(distinct.begin(), distinct.end());
  std::sort(needed.begin(), needed.end());

  Cache& cache = *cache_;
  Blocks found;
  std::vector<int64_t> missing;
  {
    const std::shared_lock lock(cache.mutex);
    for (const int64_t block : needed) {
      const auto entry = cache.blocks.find(block);
      if (entry == cache.blocks.end()) {
        missing.push_back(block);
      } else {
        found.insert(*entry);
      }
    }
  }
  if (missing.empty()) return found;

  Blocks fresh;
  for (size_t i = 0; i < missing.size(); i += max_blocks_a_load) {
    const size_t count = std::min(missing.size() - i, max_blocks_a_load);
    load(std::span(missing).subspan(i, count), fresh);
  }
  {
    const std::unique_lock lock(cache.mutex);
    if (cache.blocks.size() + fresh.size() > cache.limit) cache.blocks.clear();
    if (fresh.size() <= cache.limit) cache.blocks.insert(fresh.begin(), fresh.end());
  }
  found.merge(fresh);
  return found;
}

uint64_t Layout::cached_bytes() const {
  Cache& cache = *cache_;
  const std::shared_lock lock(cache.mutex);
  return cache.blocks.size() * sizeof(Block);
}

void Layout::limit_cache(uint64_t bytes) const {
  Cache& cache = *cache_;
  const std::unique_lock lock(cache.mutex);
  cache.limit = std::max<uint64_t>(bytes / sizeof(Block), 1);
  if (cache.blocks.size() > cache.limit) cache.blocks.clear();
}

std::vector<Span> Layout::spans(std::span<const int64_t> rows) const {
  std::vector<Span> spans(rows.size());
  if (kind_ == Kind::none) {
    throw Error(Error::Kind::pack,
                "the pack has one opaque data segment and no records: read it by spans");
  }
  if (kind_ == Kind::fixed) {
    for (size_t i = 0; i < rows.size(); ++i) {
      // Saturates where a damaged header makes the product overflow: the data ends before.
      uint64_t offset;
      if (__builtin_mul_overflow(static_cast<uint64_t>(rows[i]), record_bytes_, &offset)) {
        offset = UINT64_MAX;
      }
      spans[i].offset = offset;
      spans[i].length = record_bytes_;
    }
    return spans;
  }
  const Blocks blocks = blocks_for(rows);
  const Block* block = nullptr;
  int64_t current = -1;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] / block_rows != current) {
      current = rows[i] / block_rows;
      block = blocks.at(current).get();
    }
    spans[i] = span_in(*block, rows[i]);
  }
  return spans;
}

Span Layout::span(int64_t row) const {
  if (kind_ == Kind::variable) {
    Cache& cache = *cache_;
    const std::shared_lock lock(cache.mutex);
    const auto entry = cache.blocks.find(row / block_rows);
    if (entry != cache.blocks.end()) return span_in(*entry->second, row);
  }
  return spans({&row, 1}).front();
}

Span Layout::span_in(const Block& block, int64_t row) const {
  const auto at = static_cast<size_t>(row % block_rows);
  Span span;
  span.offset = block.offset[at];
  span.length = block.length[at];
  span.has_crc32 = crc32_.present;
  if (crc32_.present) span.crc32 = block.crc32[at];
  if (codec_id_.present) span.codec = block.codec[at];
  return span;
}

}  // namespace iac
