// A column as the Arrow C data interface hands it over: an array that keeps the column alive, and
// so does each of its children, which consumers may move out of their parent.
#include "iac/column.h"

namespace iac {
namespace {

struct ExportedArray {
  std::shared_ptr<const Column> column;
  std::vector<const void*> buffers;
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> child_pointers;
  ArrowArray dictionary{};
};

void release_exported(ArrowArray* array) {
  auto* exported = static_cast<ExportedArray*>(array->private_data);
  for (ArrowArray& child : exported->children) {
    if (child.release != nullptr) child.release(&child);
  }
  if (exported->dictionary.release != nullptr) exported->dictionary.release(&exported->dictionary);
  delete exported;
  array->release = nullptr;
}

void export_view(const std::shared_ptr<const Column>& column, const ArrowArrayView& view,
                 ArrowArray* out) {
  // Consumers may read offsets of a column without rows.
  alignas(64) static constexpr std::byte zeros[64] = {};
  auto exported = std::make_unique<ExportedArray>();
  exported->column = column;
  for (int i = 0; i < NANOARROW_MAX_FIXED_BUFFERS; ++i) {
    const auto kind = view.layout.buffer_type[i];
    if (kind == NANOARROW_BUFFER_TYPE_NONE || kind == NANOARROW_BUFFER_TYPE_VARIADIC_DATA ||
        kind == NANOARROW_BUFFER_TYPE_VARIADIC_SIZE) {
      break;
    }
    const void* data = view.buffer_views[i].data.data;
    const bool optional = kind == NANOARROW_BUFFER_TYPE_VALIDITY;
    if (optional && view.null_count == 0) data = nullptr;
    exported->buffers.push_back(data == nullptr && !optional ? zeros : data);
  }
  if (is_view_type(view.storage_type)) {
    for (int32_t i = 0; i < view.n_variadic_buffers; ++i) {
      exported->buffers.push_back(view.variadic_buffers[i]);
    }
    exported->buffers.push_back(view.variadic_buffer_sizes);
  }
  exported->children.resize(static_cast<size_t>(view.n_children));
  for (size_t i = 0; i < exported->children.size(); ++i) {
    export_view(column, *view.children[i], &exported->children[i]);
    exported->child_pointers.push_back(&exported->children[i]);
  }
  *out = ArrowArray{};
  out->length = view.length;
  out->null_count = view.null_count;
  if (view.dictionary != nullptr) {
    export_view(column, *view.dictionary, &exported->dictionary);
    out->dictionary = &exported->dictionary;
  }
  out->n_buffers = static_cast<int64_t>(exported->buffers.size());
  out->buffers = exported->buffers.data();
  out->n_children = view.n_children;
  out->children = exported->child_pointers.data();
  out->release = &release_exported;
  out->private_data = exported.release();
}

}  // namespace

void export_column(std::shared_ptr<const Column> column, ArrowArray* out) {
  export_view(column, column->view(), out);
}

}  // namespace iac
