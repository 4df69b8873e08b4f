// The values that some rows of a table have in one column, wherever they lie.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "iac/table.h"

namespace iac {

class TableValues {
 public:
  // Reads the column of each record batch that has one of the rows, which must be rows of the
  // table. Throws Error.
  TableValues(const Table& table, size_t column, std::span<const int64_t> rows);
  // Of the column of that name; nothing where there is none.
  static std::optional<TableValues> find(const Table& table, const char* name,
                                         std::span<const int64_t> rows);

  // The value of one of them; nothing where it is NULL. Throws Error when the column's type is
  // another. Any number of threads at once.
  std::optional<int64_t> integer(int64_t row) const;
  std::optional<bool> boolean(int64_t row) const;
  std::optional<std::string_view> bytes(int64_t row) const;  // of texts as well

 private:
  struct Place {
    const ArrowArrayView* view;
    int64_t row;
  };
  // Nothing where the value is NULL; the value of a dictionary is there.
  std::optional<Place> place(int64_t row) const;
  [[noreturn]] void wrong_type(ArrowType type, const char* expected) const;

  const Table& table_;
  const char* name_;
  std::map<size_t, std::shared_ptr<const Column>> batches_;
};

}  // namespace iac
