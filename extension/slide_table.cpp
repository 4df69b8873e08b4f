// iac_slides(path): the slide table of a pack as it is.
#include <iac/error.h>

#include <algorithm>
#include <memory>

#include "columns.h"
#include "functions.h"
#include "packs.h"
#include "table_function.h"

namespace iac::duckdb {
namespace {

struct Plan {
  PackList packs;
  std::vector<PackColumn> columns;
  std::string signature;
};

struct Reader {
  std::shared_ptr<const Pack> pack;
  std::vector<const PackColumn*> columns;  // as the chunk wants them
  std::vector<size_t> positions;           // of them in the table
  size_t batch = 0;
  int64_t row = 0;  // in the batch
  Columns values;   // of the batch; empty before its first row
};

void bind(duckdb_bind_info info) {
  auto plan = std::make_unique<Plan>();
  plan->packs = bind_packs(info, "iac_slides");
  if (plan->packs.paths.size() != 1) {
    throw Error(Error::Kind::argument, "iac_slides: expected one pack, these are " +
                                           std::to_string(plan->packs.paths.size()));
  }
  const auto pack = open_pack(plan->packs.context.get(), plan->packs.paths.front());
  plan->columns = slide_columns(*pack);
  plan->signature = signature(plan->columns);
  add_types(*pack, plan->columns);
  if (plan->columns.empty()) {
    throw Error(Error::Kind::argument, "iac_slides: the slide table has no columns")
        .in(pack->path());
  }
  for (const PackColumn& column : plan->columns) {
    duckdb_bind_add_result_column(info, column.name.c_str(), column.type.logical.get());
  }
  duckdb_bind_set_cardinality(info, static_cast<idx_t>(pack->slides()->num_rows()), true);
  duckdb_bind_set_bind_data(info, plan.release(), delete_state<Plan>);
}

// Opens the pack again: a prepared statement runs long after it was planned.
void init(duckdb_init_info info) {
  const Plan& plan = *static_cast<const Plan*>(duckdb_init_get_bind_data(info));
  const std::string& path = plan.packs.paths.front();
  auto reader = std::make_unique<Reader>();
  reader->pack = open_pack(plan.packs.context.get(), path);
  if (signature(slide_columns(*reader->pack)) != plan.signature) {
    throw Error(Error::Kind::stale,
                "the pack was replaced by one with other columns, prepare the query again")
        .in(path);
  }
  for (idx_t i = 0; i < duckdb_init_get_column_count(info); ++i) {
    const PackColumn& column = plan.columns[duckdb_init_get_column_index(info, i)];
    if (!column.problem.empty()) {
      rethrow_in(Error(Error::Kind::argument, column.problem), column.name, path);
    }
    reader->columns.push_back(&column);
    reader->positions.push_back(column.position);
  }
  duckdb_init_set_init_data(info, reader.release(), delete_state<Reader>);
}

void next(duckdb_function_info info, duckdb_data_chunk chunk) {
  auto& reader = *static_cast<Reader*>(duckdb_function_get_init_data(info));
  const Table& slides = *reader.pack->slides();
  while (reader.batch < slides.num_batches() && reader.row == slides.batch_rows(reader.batch)) {
    ++reader.batch;
    reader.row = 0;
    reader.values.clear();
  }
  if (reader.batch == slides.num_batches()) return duckdb_data_chunk_set_size(chunk, 0);
  if (reader.values.empty()) {
    try {
      reader.values = read_columns(slides, reader.batch, reader.positions);
    } catch (Error& error) {
      throw std::move(error).in(reader.pack->path());
    }
  }
  const auto count = std::min(static_cast<size_t>(slides.batch_rows(reader.batch) - reader.row),
                              static_cast<size_t>(duckdb_vector_size()));
  for (size_t i = 0; i < reader.columns.size(); ++i) {
    const PackColumn& column = *reader.columns[i];
    try {
      column.type.fill(column.type, reader.values[column.position]->view(), Rows(reader.row, count),
                       duckdb_data_chunk_get_vector(chunk, i));
    } catch (const Error& error) {
      rethrow_in(error, column.name, reader.pack->path());
    }
  }
  reader.row += static_cast<int64_t>(count);
  duckdb_data_chunk_set_size(chunk, count);
}

}  // namespace

void register_slides(duckdb_connection connection) {
  static constexpr TableFunction function{
      .name = "iac_slides", .bind = bind, .init = init, .next = next, .picks_columns = true};
  register_table_function(connection, function);
}

}  // namespace iac::duckdb
