#include "iac/column_check.h"

#include <algorithm>
#include <string>

#include "iac/bytes.h"
#include "iac/error.h"
#include "iac/utf8.h"

namespace iac {
namespace {

template <class Offset>
void check_text(const ArrowArrayView& view) {
  if (view.length == 0) return;
  const auto* offsets = static_cast<const Offset*>(view.buffer_views[1].data.data);
  const auto* data = static_cast<const std::byte*>(view.buffer_views[2].data.data);
  const auto text = [&](int64_t from, int64_t to) {
    return Bytes(data + offsets[from], static_cast<size_t>(offsets[to] - offsets[from]));
  };
  if (is_ascii(text(0, view.length))) return;
  for (int64_t i = 0; i < view.length; ++i) {
    if (!ArrowArrayViewIsNull(&view, i) && !is_utf8(text(i, i + 1))) {
      throw damaged_table("text that is not UTF-8");
    }
  }
}

void check_views(const ArrowArrayView& view) {
  const auto* entries = view.buffer_views[1].data.as_binary_view;
  for (int64_t i = 0; i < view.length; ++i) {
    if (ArrowArrayViewIsNull(&view, i)) continue;
    const ArrowBinaryView& entry = entries[i];
    const int64_t size = entry.inlined.size;
    const bool inlined = size <= NANOARROW_BINARY_VIEW_INLINE_SIZE;
    bool valid = size >= 0;
    if (valid && !inlined) {
      const auto& ref = entry.ref;
      valid = ref.buffer_index >= 0 && ref.buffer_index < view.n_variadic_buffers &&
              ref.offset >= 0 && ref.offset + size <= view.variadic_buffer_sizes[ref.buffer_index];
    }
    if (!valid) throw damaged_table("view outside its buffers");
    // Whoever compares views compares all sixteen bytes.
    const auto* rest = entry.inlined.data + (inlined ? size : NANOARROW_BINARY_VIEW_INLINE_SIZE);
    const auto* end = entry.inlined.data + NANOARROW_BINARY_VIEW_INLINE_SIZE;
    if (std::any_of(rest, end, [](uint8_t byte) { return byte != 0; })) {
      throw damaged_table("short view that is not padded with zeros");
    }
    const ArrowBufferView value = ArrowArrayViewGetBytesUnsafe(&view, i);
    const Bytes bytes = as_bytes(value.data.data, static_cast<size_t>(value.size_bytes));
    if (!inlined && std::memcmp(entry.ref.prefix, bytes.data(), 4) != 0) {
      throw damaged_table("view whose prefix differs from its text");
    }
    if (view.storage_type == NANOARROW_TYPE_STRING_VIEW && !is_utf8(bytes)) {
      throw damaged_table("text that is not UTF-8");
    }
  }
}

// What nanoarrow's full validation leaves out.
void check_more(const ArrowArrayView& view) {
  switch (view.storage_type) {
    case NANOARROW_TYPE_STRING:
      check_text<int32_t>(view);
      break;
    case NANOARROW_TYPE_LARGE_STRING:
      check_text<int64_t>(view);
      break;
    case NANOARROW_TYPE_STRING_VIEW:
    case NANOARROW_TYPE_BINARY_VIEW:
      check_views(view);
      break;
    case NANOARROW_TYPE_MAP: {
      const auto& entries = *view.children[0];
      if (entries.null_count > 0 || entries.children[0]->null_count > 0) {
        throw damaged_table("map whose entries or keys are null");  // pyarrow aborts the process
      }
      break;
    }
    case NANOARROW_TYPE_DENSE_UNION:
      for (int64_t i = 0; i < view.length; ++i) {
        const auto& child = *view.children[ArrowArrayViewUnionChildIndex(&view, i)];
        if (ArrowArrayViewUnionChildOffset(&view, i) >= child.length) {
          throw damaged_table("union offset outside its child");
        }
      }
      break;
    case NANOARROW_TYPE_RUN_END_ENCODED: {
      const auto& ends = *view.children[0];
      const bool covered =
          ends.length == 0 ? view.length == 0
                           : ArrowArrayViewGetIntUnsafe(&ends, 0) > 0 &&
                                 ArrowArrayViewGetIntUnsafe(&ends, ends.length - 1) >= view.length;
      if (!covered) throw damaged_table("run ends that do not cover the column");
      break;
    }
    default:
      break;
  }
  for (int64_t i = 0; i < view.n_children; ++i) check_more(*view.children[i]);
}

// What nanoarrow's validation would stumble over: products that overflow, and the sizes of list
// views, which it reads without asking whether they are there. Lengths are below 2^40 (node_at).
void check_before(const ArrowArrayView& view) {
  const int64_t bits = view.layout.element_size_bits[1];
  if (bits > 0 && view.length > (INT64_MAX - 7) / bits)
    throw damaged_table("impossible column length");
  if (view.storage_type == NANOARROW_TYPE_FIXED_SIZE_LIST) {
    const int64_t size = view.layout.child_size_elements;
    if (size < 0 || (size > 0 && view.length > view.children[0]->length / size)) {
      throw damaged_table("fixed-size list longer than its child");
    }
  }
  const bool large = view.storage_type == NANOARROW_TYPE_LARGE_LIST_VIEW;
  if (large || view.storage_type == NANOARROW_TYPE_LIST_VIEW) {
    const int64_t needed = view.length * (large ? 8 : 4);
    if (view.buffer_views[1].size_bytes < needed || view.buffer_views[2].size_bytes < needed) {
      throw damaged_table("list view without its offsets or sizes");
    }
    const auto limit = view.children[0]->length;
    for (int64_t i = 0; large && i < view.length; ++i) {
      if (view.buffer_views[1].data.as_int64[i] > limit ||
          view.buffer_views[2].data.as_int64[i] > limit) {
        throw damaged_table("list view outside its child");
      }
    }
  }
  for (int64_t i = 0; i < view.n_children; ++i) check_before(*view.children[i]);
}

}  // namespace

void check_column(ArrowArrayView& view) {
  check_before(view);
  ArrowError error;
  if (ArrowArrayViewValidate(&view, NANOARROW_VALIDATION_LEVEL_FULL, &error) != NANOARROW_OK) {
    throw damaged_table(error.message);
  }
  check_more(view);
}

}  // namespace iac
