#include "copy_slides.h"

#include <iac/error.h>

#include <numeric>

#include "values.h"

namespace iac::duckdb {

void SlideBuilder::add(duckdb_data_chunk chunk, size_t count, int64_t first_row) {
  if (plan_.slides.empty()) return;
  std::vector<duckdb_vector> vectors;
  for (const StoredColumn& column : plan_.slides) {
    vectors.push_back(plan_.column(chunk, column.position));
  }
  const auto conflict = [&](size_t i, const std::string& reason) {
    return Error(Error::Kind::argument,
                 "column '" + plan_.slides.front().name + "': " + reason +
                     ": leave that column out, and slides are numbered as they come, or "
                     "choose other SLIDE_COLUMNS")
        .at(first_row + static_cast<int64_t>(i));
  };

  std::vector<int64_t> fresh;  // rows with a slide that was not there before
  std::string number, values, last_number, last_values;
  for (size_t i = 0; i < count; ++i) {
    number.clear();
    values.clear();
    const size_t keys = plan_.key ? 1 : 0;
    for (size_t k = 0; k < vectors.size(); ++k) {
      std::string& text = k < keys ? number : values;
      append_key(plan_.slides[k].type, vectors[k], static_cast<int64_t>(i), text);
    }
    const bool same = i > 0 && number == last_number && values == last_values;
    if (plan_.key) {
      if (same) continue;
      // A record without a number has no slide, and so nothing that says which.
      if (number.front() == '\0') {
        for (size_t k = keys; k < vectors.size(); ++k) {
          if (!is_valid(duckdb_vector_get_validity(vectors[k]), i)) continue;
          throw conflict(i, "it is NULL, but '" + plan_.slides[k].name + "' is not");
        }
      } else if (const auto [at, is_new] = values_.emplace(number, values); is_new) {
        fresh.push_back(static_cast<int64_t>(i));
      } else if (at->second != values) {
        throw conflict(i, "the number of this slide is that of another one");
      }
    } else {
      if (same) {
        slide_of_record_.push_back(slide_of_record_.back());
        continue;
      }
      if (numbers_.size() > UINT32_MAX) {
        throw Error(Error::Kind::argument, "there are more than 4,294,967,296 slides");
      }
      const auto next = static_cast<uint32_t>(numbers_.size());
      const auto [at, is_new] = numbers_.emplace(values, next);
      if (is_new) fresh.push_back(static_cast<int64_t>(i));
      slide_of_record_.push_back(at->second);
    }
    std::swap(number, last_number);
    std::swap(values, last_values);
  }
  table_.append(plan_, chunk, Rows(fresh));
}

nanoarrow::UniqueBuffer SlideBuilder::finish() {
  if (!plan_.numbers_slides) return table_.finish({}, {});
  std::vector<uint32_t> numbers(static_cast<size_t>(num_slides()));
  std::iota(numbers.begin(), numbers.end(), 0);
  const PlainColumn key{"slide_idx", NANOARROW_TYPE_UINT32, sizeof(uint32_t), numbers.data()};
  return table_.finish({&key, 1}, {});
}

}  // namespace iac::duckdb
