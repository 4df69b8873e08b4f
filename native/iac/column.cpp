#include "iac/column.h"

#include <lz4frame.h>
#include <nanoarrow/ipc/flatcc_generated.h>
#include <zstd.h>

#include <algorithm>
#include <string>

#include "iac/column_check.h"
#include "iac/error.h"

#define FB(name) FLATBUFFERS_WRAP_NAMESPACE(org_apache_arrow_flatbuf, name)

namespace iac {
namespace {

FB(RecordBatch_table_t) table_of(const BatchLocation& batch) {
  return static_cast<FB(RecordBatch_table_t)>(batch.record_batch);
}

bool is_union(ArrowType type) {
  return type == NANOARROW_TYPE_SPARSE_UNION || type == NANOARROW_TYPE_DENSE_UNION;
}

ArrowType storage_type(const ArrowSchema& field) {
  ArrowSchemaView view;
  ArrowError error;
  if (ArrowSchemaViewInit(&view, &field, &error) != NANOARROW_OK)
    throw damaged_table(error.message);
  return view.storage_type;
}

// Buffers of a field in the body, variadic ones aside.
size_t fixed_buffers(ArrowType type, bool version4) {
  ArrowLayout layout;
  ArrowLayoutInit(&layout, type);
  size_t count = version4 && is_union(type) ? 1 : 0;
  for (const auto buffer : layout.buffer_type) {
    const bool in_body = buffer != NANOARROW_BUFFER_TYPE_NONE &&
                         buffer != NANOARROW_BUFFER_TYPE_VARIADIC_DATA &&
                         buffer != NANOARROW_BUFFER_TYPE_VARIADIC_SIZE;
    count += in_body ? 1 : 0;
  }
  return count;
}

size_t variadic_count(const BatchLocation& batch, size_t index) {
  const auto counts = FB(RecordBatch_variadicBufferCounts(table_of(batch)));
  if (counts == nullptr || index >= flatbuffers_int64_vec_len(counts)) {
    throw damaged_table("view column without a count of its buffers");
  }
  const int64_t count = flatbuffers_int64_vec_at(counts, index);
  const auto buffers = FB(RecordBatch_buffers(table_of(batch)));
  if (count < 0 || static_cast<size_t>(count) > FB(Buffer_vec_len(buffers))) {
    throw damaged_table("view column with an impossible count of buffers");
  }
  return static_cast<size_t>(count);
}

// In the source.
Segment buffer_place(const BatchLocation& batch, size_t index) {
  const auto buffers = FB(RecordBatch_buffers(table_of(batch)));
  if (index >= FB(Buffer_vec_len(buffers))) throw damaged_table("record batch has too few buffers");
  const auto buffer = FB(Buffer_vec_at(buffers, index));
  const int64_t offset = FB(Buffer_offset(buffer)), length = FB(Buffer_length(buffer));
  if (length == 0) return {};
  if (offset < 0 || length < 0 || static_cast<uint64_t>(length) > batch.body_length ||
      static_cast<uint64_t>(offset) > batch.body_length - static_cast<uint64_t>(length)) {
    throw damaged_table("buffer outside the body of its record batch");
  }
  return {batch.body_offset + static_cast<uint64_t>(offset), static_cast<uint64_t>(length)};
}

struct Node {
  int64_t length = 0;
  int64_t null_count = 0;
};

Node node_at(const BatchLocation& batch, size_t index) {
  const auto nodes = FB(RecordBatch_nodes(table_of(batch)));
  if (index >= FB(FieldNode_vec_len(nodes))) throw damaged_table("record batch has too few fields");
  const auto node = FB(FieldNode_vec_at(nodes, index));
  const Node found{FB(FieldNode_length(node)), FB(FieldNode_null_count(node))};
  // Lengths below 2^40 keep every size computed from them within 64 bits.
  if (found.length < 0 || found.length > int64_t{1} << 40)
    throw damaged_table("impossible column length");
  return found;
}

void decompress(FB(CompressionType_enum_t) codec, Bytes in, MutableBytes out) {
  if (codec == FB(CompressionType_ZSTD)) {
    const size_t size = ZSTD_decompress(out.data(), out.size(), in.data(), in.size());
    if (ZSTD_isError(size) || size != out.size())
      throw damaged_table("zstd buffer does not decompress");
    return;
  }
  LZ4F_dctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) throw std::bad_alloc();
  const std::unique_ptr<LZ4F_dctx, decltype(&LZ4F_freeDecompressionContext)> owner(
      context, &LZ4F_freeDecompressionContext);
  while (true) {
    size_t produced = out.size(), consumed = in.size();
    const size_t left =
        LZ4F_decompress(context, out.data(), &produced, in.data(), &consumed, nullptr);
    out = out.subspan(produced);
    if (LZ4F_isError(left)) throw damaged_table("lz4 buffer does not decompress");
    if (left == 0) break;
    if (produced == 0 && consumed == 0) throw damaged_table("lz4 buffer does not decompress");
    in = in.subspan(consumed);
  }
  if (!out.empty()) throw damaged_table("lz4 buffer is shorter than it says");
}

// Whether `compressed` bytes can hold `size`: a zstd block of 3 bytes or more gives at most
// 128 KiB, lz4 at most 255 bytes a byte.
bool plausible_size(uint64_t size, uint64_t compressed) {
  return size <= (compressed / 3 + 1) * (uint64_t{128} << 10);
}

}  // namespace

BatchCursor BatchCursor::behind(const ArrowSchema& field, const BatchLocation& batch) const {
  const ArrowType type = storage_type(field);
  BatchCursor next = *this;
  ++next.node;
  next.buffer += fixed_buffers(type, batch.version4);
  if (is_view_type(type)) next.buffer += variadic_count(batch, next.variadic++);
  for (int64_t i = 0; i < field.n_children; ++i) next = next.behind(*field.children[i], batch);
  return next;
}

class ColumnReader {
 public:
  ColumnReader(const Source& source, const BatchLocation& batch, BatchCursor at,
               const TableSchema& schema, const DictionaryLookup& dictionaries, Column& out)
      : source_(source),
        batch_(batch),
        at_(at),
        schema_(schema),
        dictionaries_(dictionaries),
        out_(out) {
    const auto table = table_of(batch);
    compressed_ = FB(RecordBatch_compression_is_present(table));
    if (compressed_) codec_ = FB(BodyCompression_codec(FB(RecordBatch_compression(table))));
  }

  void read(const ArrowSchema& field, ArrowArrayView& view) {
    const Node node = node_at(batch_, at_.node++);
    view.offset = 0;
    view.length = node.length;
    if (batch_.version4 && is_union(view.storage_type)) ++at_.buffer;
    for (int i = 0; i < NANOARROW_MAX_FIXED_BUFFERS; ++i) {
      const auto kind = view.layout.buffer_type[i];
      if (kind == NANOARROW_BUFFER_TYPE_NONE || kind == NANOARROW_BUFFER_TYPE_VARIADIC_DATA ||
          kind == NANOARROW_BUFFER_TYPE_VARIADIC_SIZE) {
        break;
      }
      view.buffer_views[i] = read_buffer();
    }
    if (is_view_type(view.storage_type)) read_variadic(view);
    count_nulls(view);
    for (int64_t i = 0; i < view.n_children; ++i) read(*field.children[i], *view.children[i]);
    if (field.dictionary != nullptr) {
      const auto dictionary = dictionaries_(schema_.dictionary_ids.at(&field));
      alias(dictionary->view(), *view.dictionary);
      out_.dictionaries_.push_back(dictionary);
    }
  }

 private:
  // The null count follows from the bitmap, whatever the message says.
  static void count_nulls(ArrowArrayView& view) {
    view.null_count = view.storage_type == NANOARROW_TYPE_NA ? view.length : 0;
    if (view.layout.buffer_type[0] != NANOARROW_BUFFER_TYPE_VALIDITY) return;
    const auto& bitmap = view.buffer_views[0];
    if (bitmap.size_bytes == 0) return;
    if (bitmap.size_bytes < (view.length + 7) / 8)
      throw damaged_table("validity bitmap is too short");
    view.null_count = view.length - ArrowBitCountSet(bitmap.data.as_uint8, 0, view.length);
  }

  ArrowBufferView read_buffer() {
    const auto place = buffer_place(batch_, at_.buffer++);
    if (place.length == 0) return {{nullptr}, 0};
    Buffer stored = allocate(place.length);
    source_.read_at(place.offset, stored.bytes());
    if (!compressed_) return keep(stored, 0, place.length);

    // Compressed buffers start with their decompressed length, -1 for one left as it was.
    if (place.length < sizeof(int64_t)) throw damaged_table("compressed buffer is too short");
    const auto length = load<int64_t>(stored.data());
    const Bytes body = stored.bytes().subspan(sizeof length);
    if (length == -1) return keep(stored, sizeof length, body.size());
    if (length < 0 || !plausible_size(static_cast<uint64_t>(length), body.size())) {
      throw damaged_table("compressed buffer claims an impossible length");
    }
    Buffer plain = allocate(static_cast<size_t>(length));
    if (length > 0) decompress(codec_, body, plain.bytes());
    return keep(plain, 0, plain.size());
  }

  static Buffer allocate(size_t size) {
    Buffer buffer = Buffer::allocate(size);
    buffer.set_size(size);
    return buffer;
  }

  ArrowBufferView keep(const Buffer& buffer, size_t skip, size_t size) {
    ArrowBufferView view;
    view.data.data = buffer.data() + skip;
    view.size_bytes = static_cast<int64_t>(size);
    out_.bytes_ += buffer.size();
    out_.buffers_.push_back(buffer);
    return view;
  }

  void read_variadic(ArrowArrayView& view) {
    const size_t count = variadic_count(batch_, at_.variadic++);
    auto pointers = std::make_unique<const void*[]>(count + 1);
    auto sizes = std::make_unique<int64_t[]>(count + 1);
    for (size_t i = 0; i < count; ++i) {
      const ArrowBufferView buffer = read_buffer();
      pointers[i] = buffer.data.data;
      sizes[i] = buffer.size_bytes;
    }
    view.n_variadic_buffers = static_cast<int32_t>(count);
    view.variadic_buffers = pointers.get();
    view.variadic_buffer_sizes = sizes.get();
    out_.variadic_pointers_.push_back(std::move(pointers));
    out_.variadic_sizes_.push_back(std::move(sizes));
  }

  // Makes `to` show the memory that `from` shows.
  static void alias(const ArrowArrayView& from, ArrowArrayView& to) {
    to.offset = from.offset;
    to.length = from.length;
    to.null_count = from.null_count;
    std::copy(std::begin(from.buffer_views), std::end(from.buffer_views), to.buffer_views);
    to.n_variadic_buffers = from.n_variadic_buffers;
    to.variadic_buffers = from.variadic_buffers;
    to.variadic_buffer_sizes = from.variadic_buffer_sizes;
    for (int64_t i = 0; i < from.n_children; ++i) alias(*from.children[i], *to.children[i]);
    if (from.dictionary != nullptr) alias(*from.dictionary, *to.dictionary);
  }

  const Source& source_;
  const BatchLocation& batch_;
  BatchCursor at_;
  const TableSchema& schema_;
  const DictionaryLookup& dictionaries_;
  Column& out_;
  bool compressed_ = false;
  FB(CompressionType_enum_t) codec_ = 0;
};

std::shared_ptr<const Column> Column::read(const Source& source, const BatchLocation& batch,
                                           BatchCursor at, const ArrowSchema& field,
                                           const TableSchema& schema,
                                           const DictionaryLookup& dictionaries) {
  auto column = std::make_shared<Column>();
  ArrowArrayView* view = column->view_.get();
  ArrowError error;
  try {
    if (ArrowArrayViewInitFromSchema(view, &field, &error) != NANOARROW_OK) {
      throw damaged_table(error.message);
    }
    ColumnReader(source, batch, at, schema, dictionaries, *column).read(field, *view);
    check_column(*view);
  } catch (const Error& failed) {
    throw Error(failed.kind(), "column '" + std::string(field.name) + "': " + failed.reason(),
                failed.code());
  }
  return column;
}

void locate_buffers(const BatchLocation& batch, BatchCursor at, const ArrowSchema& field,
                    std::vector<Segment>& out) {
  const BatchCursor next = at.behind(field, batch);
  for (size_t i = at.buffer; i < next.buffer; ++i) out.push_back(buffer_place(batch, i));
}

PlainValues locate_plain_values(const BatchLocation& batch, BatchCursor at, int64_t rows,
                                size_t width) {
  const Node node = node_at(batch, at.node);
  if (node.length != rows) throw damaged_table("column and record batch differ in length");
  const Segment values = buffer_place(batch, at.buffer + 1);
  const bool plain = !FB(RecordBatch_compression_is_present(table_of(batch)));
  if (plain && values.length < static_cast<uint64_t>(rows) * width) {
    throw damaged_table("column is shorter than its record batch");
  }
  return {plain ? values.offset : 0, node.null_count};
}

}  // namespace iac
