// Checking the memory of a column before anybody uses it.
#pragma once

#include <nanoarrow/nanoarrow.hpp>

namespace iac {

// Throws Error unless every offset, index, size and text of the column, its children and the
// lengths between them are as Arrow's columnar format says. The view's buffers hold what its
// buffer_views say and its lengths are at most 2^40. Dictionaries were checked when they were read.
void check_column(ArrowArrayView& view);

}  // namespace iac
