// A table segment of a pack: an Arrow IPC stream, read lazily. Opening reads the schema and the
// metadata of each record batch; a column's values are read when they are asked for and stay with
// the table within a bound.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "iac/column.h"
#include "iac/header.h"
#include "iac/per_process.h"

namespace iac {

class Table : public std::enable_shared_from_this<Table> {
 public:
  // `name` is the table's name in errors. Throws Error when the stream is damaged or its rows are
  // not `expected_rows`.
  static std::shared_ptr<const Table> open(std::shared_ptr<const Source> source, Segment segment,
                                           std::string name, uint64_t expected_rows);

  const ArrowSchema& schema() const { return *schema_.root.get(); }
  size_t num_columns() const { return static_cast<size_t>(schema().n_children); }
  const ArrowSchema& field(size_t column) const { return *schema().children[column]; }
  int64_t num_rows() const { return num_rows_; }

  // The position of the column of that name. Throws Error when two columns have it.
  std::optional<size_t> find(std::string_view name) const;

  size_t num_batches() const { return batches_.size(); }
  int64_t batch_rows(size_t batch) const { return batches_[batch].rows; }
  // The batch that holds the row, and the row's place in it.
  std::pair<size_t, int64_t> locate(int64_t row) const;

  // Reads and validates one column of one batch, or gives the one read before.
  std::shared_ptr<const Column> column(size_t column, size_t batch) const;

  // Bytes of columns that stay with the table, and how many may.
  uint64_t cached_bytes() const;
  enum class Keep {
    at_once,
    // Of what is read once, as by a scan of many tables, the memory is used again for the next:
    // new memory costs more than reading does.
    when_read_again,
  };
  void limit_cache(uint64_t bytes, Keep keep = Keep::at_once) const;
  static constexpr uint64_t cache_limit = uint64_t{256} << 20;  // until limit_cache was called

  // Several columns of one batch, on several threads. Where reads are expensive they are read
  // together.
  std::vector<std::shared_ptr<const Column>> columns(std::span<const size_t> columns,
                                                     size_t batch) const;

  // Values of rows [row, row + count) of a column of fixed width without nulls.
  struct Values {
    size_t column;
    int64_t row, count;
    size_t width;
    MutableBytes out;
  };
  // Reads only the rows asked for where they lie plainly in the file.
  void read_values(std::span<const Values> wanted) const;

  // Throws Error when the metadata counts a null in the column.
  void require_no_nulls(size_t column) const;

  // The chosen columns as a stream of the C data interface, a batch a record batch.
  void export_stream(std::vector<size_t> columns, ArrowArrayStream* out) const;

 private:
  struct Metadata {  // a message's flatbuffer, in memory aligned for it
    std::unique_ptr<uint64_t[]> words;
  };
  struct Batch {
    BatchLocation location;
    Metadata metadata;
    int64_t rows = 0;
    int64_t first_row = 0;
    size_t dictionaries_before = 0;  // dictionary messages that stand before it in the stream
  };
  struct DictionaryMessage {
    BatchLocation location;
    Metadata metadata;
    int64_t id = 0;
    bool is_delta = false;
  };
  struct Cached {
    std::shared_ptr<const Column> column;
    uint64_t last_use = 0;
  };
  struct Cache {
    std::mutex mutex;
    std::map<std::pair<size_t, size_t>, Cached> columns;  // (column or dictionary, batch)
    std::set<std::pair<size_t, size_t>> seen;             // when only those seen twice stay
    uint64_t bytes = 0;
    uint64_t limit = cache_limit;
    Keep keep = Keep::at_once;
    uint64_t clock = 0;

    // Drops the columns that were not used for longest.
    void evict();
  };

  void scan(Segment segment);
  void add_message(Metadata metadata, const void* message, uint64_t body_offset,
                   uint64_t body_length);
  BatchCursor place(size_t column, const Batch& batch) const;
  size_t dictionary_message(int64_t id, size_t messages_before) const;
  void locate_dictionaries(const ArrowSchema& field, size_t messages_before,
                           std::vector<Segment>& out) const;
  bool is_cached(std::pair<size_t, size_t> key) const;
  std::shared_ptr<const Column> read_column(const Source& source, size_t column,
                                            size_t batch) const;
  std::shared_ptr<const Column> dictionary(const Source& source, int64_t id,
                                           size_t messages_before) const;
  template <class Part>
  void for_each_part(const Values& wanted, Part part) const;
  template <class Read>
  std::shared_ptr<const Column> cached(std::pair<size_t, size_t> key, Read read) const;

  std::shared_ptr<const Source> source_;
  std::string name_;
  TableSchema schema_;
  std::vector<Batch> batches_;
  std::vector<DictionaryMessage> dictionaries_;
  std::map<int64_t, const ArrowSchema*> dictionary_fields_;
  int64_t num_rows_ = 0;
  PerProcess<Cache> cache_;
};

}  // namespace iac
