// Where each record of a pack is stored. For variable records that is what the index columns
// offset, length and crc32 (and codec_id) say, of which only the needed row ranges are read; for
// fixed records it follows from the row number.
#pragma once

#include <array>
#include <memory>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "iac/table.h"

namespace iac {

struct Span {
  uint64_t offset = 0;  // from the start of the data segment
  uint64_t length = 0;
  uint32_t crc32 = 0;
  uint8_t codec = 0;  // position in the header's record_codecs
  bool has_crc32 = false;
};

class Layout {
 public:
  // Checks the layout columns' presence, types and nulls. Throws Error.
  Layout(std::shared_ptr<const Table> index, const Header& header);

  enum class Kind {
    variable,  // offset, length and crc32 columns
    fixed,     // a matrix
    none,      // a data segment without records
  };
  Kind kind() const { return kind_; }
  bool has_crc32() const { return crc32_.present; }
  // Whether each record has a codec of its own.
  bool has_codec_ids() const { return codec_id_.present; }

  // The spans of rows, which must all be in [0, num_records). Not checked against the data
  // segment: see Pack.
  std::vector<Span> spans(std::span<const int64_t> rows) const;
  // Bytes that stay with the layout, 17 KiB for 1,024 rows, and how many may. Beyond that all are
  // dropped at once, which costs one more read of those still needed.
  uint64_t cached_bytes() const;
  void limit_cache(uint64_t bytes) const;
  static constexpr uint64_t cache_limit = uint64_t{70} << 20;  // until limit_cache was called

  // One of them, at little cost when its neighbours were asked for before.
  Span span(int64_t row) const;

 private:
  static constexpr int64_t block_rows = 1024;
  struct Block {
    std::array<uint64_t, block_rows> offset;
    std::array<uint32_t, block_rows> length;
    std::array<uint32_t, block_rows> crc32;
    std::array<uint8_t, block_rows> codec;
  };
  using Blocks = std::unordered_map<int64_t, std::shared_ptr<const Block>>;
  struct Cache {
    std::shared_mutex mutex;
    Blocks blocks;
    uint64_t limit = cache_limit / sizeof(Block);
  };
  struct LayoutColumn {
    size_t column = 0;
    size_t width = 0;
    bool present = false;
    bool is_signed = false;
  };

  LayoutColumn find(const char* name, std::initializer_list<ArrowType> types) const;
  void load(std::span<const int64_t> blocks, Blocks& out) const;  // in rising order
  Blocks blocks_for(std::span<const int64_t> rows) const;
  Span span_in(const Block& block, int64_t row) const;
  uint8_t codec_position(int64_t id) const;

  std::shared_ptr<const Table> index_;
  Kind kind_ = Kind::none;
  uint64_t record_bytes_ = 0;
  LayoutColumn offset_, length_, crc32_, codec_id_;
  std::vector<RecordCodec> record_codecs_;
  PerProcess<Cache> cache_;
};

}  // namespace iac
