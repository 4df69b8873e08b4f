#include "slides.h"

#include <algorithm>
#include <string>

#include "iac/error.h"

namespace iac::duckdb {
namespace {

constexpr const char* key_names[] = {"slide_idx", "series_idx"};

SlideLookup::Key key_at(const ArrowArrayView& view, int64_t row) {
  if (view.storage_type == NANOARROW_TYPE_UINT64) return ArrowArrayViewGetUIntUnsafe(&view, row);
  return ArrowArrayViewGetIntUnsafe(&view, row);
}

void require_integers(const ArrowSchema& field, const char* table) {
  ArrowSchemaView view;
  ArrowError error;
  const bool readable = ArrowSchemaViewInit(&view, &field, &error) == NANOARROW_OK;
  const bool integers = readable && field.dictionary == nullptr &&
                        view.type >= NANOARROW_TYPE_UINT8 && view.type <= NANOARROW_TYPE_INT64;
  if (integers) return;
  throw Error(Error::Kind::pack, std::string(table) + " table: column '" + field.name +
                                     "' has type " +
                                     (readable ? ArrowTypeString(view.type) : field.format) +
                                     ", slides are joined by integers");
}

}  // namespace

std::optional<SlideKey> find_slide_key(const Pack& pack) {
  for (const char* name : key_names) {
    const auto in_index = pack.index()->find(name), in_slides = pack.slides()->find(name);
    if (in_index && in_slides) return SlideKey{*in_index, *in_slides};
  }
  return std::nullopt;
}

SlideLookup::SlideLookup(const Pack& pack, std::optional<SlideKey> key) : is_broadcast_(!key) {
  if (is_broadcast_) return;
  const Table& slides = *pack.slides();
  require_integers(pack.index()->field(key->index_column), "index");
  require_integers(slides.field(key->slide_column), "slide");
  int64_t row = 0;
  for (size_t batch = 0; batch < slides.num_batches(); ++batch) {
    const auto column = slides.column(key->slide_column, batch);
    const ArrowArrayView& view = column->view();
    for (int64_t i = 0; i < column->length(); ++i, ++row) {
      if (ArrowArrayViewIsNull(&view, i)) continue;
      if (rows_.emplace(key_at(view, i), row).second) continue;
      throw Error(Error::Kind::pack, std::string("slide table: two rows have the same ") +
                                         slides.field(key->slide_column).name +
                                         ", the second is row " + std::to_string(row));
    }
  }
}

void SlideLookup::find(const Column* keys, int64_t first, std::span<int64_t> rows) const {
  if (is_broadcast_) {
    std::fill(rows.begin(), rows.end(), 0);
    return;
  }
  const ArrowArrayView& view = keys->view();
  Key last_key = 0;
  int64_t last_row = 0;
  bool has_last = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t at = first + static_cast<int64_t>(i);
    if (ArrowArrayViewIsNull(&view, at)) {
      rows[i] = -1;
      continue;
    }
    const Key key = key_at(view, at);
    if (!has_last || key != last_key) {  // neighbours mostly belong to the same slide
      const auto found = rows_.find(key);
      last_row = found != rows_.end() ? found->second : -1;
      last_key = key;
      has_last = true;
    }
    rows[i] = last_row;
  }
}

}  // namespace iac::duckdb
