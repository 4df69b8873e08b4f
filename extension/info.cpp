// iac_info(path, ignore_errors := false): a row a pack, of what its header says.
#include <iac/error.h>

#include <algorithm>

#include "files.h"
#include "functions.h"
#include "packs.h"
#include "table_function.h"

namespace iac::duckdb {
namespace {

struct Plan {
  PackList packs;
  bool ignore_errors = false;  // a last column says why a pack cannot be opened
};

struct Listing {
  const Plan* plan;
  size_t next = 0;
};

constexpr const char* texts[] = {"path", "payload_type", "codec", "codec_params", "header"};
constexpr const char* numbers[] = {"num_records",       "num_slides", "slide_table_bytes",
                                   "index_table_bytes", "data_bytes", "file_size"};
constexpr idx_t error_column = std::size(texts) + std::size(numbers);

// A fact that is not there is NULL.
void write(duckdb_data_chunk chunk, idx_t row, const Pack& pack) {
  const Header& header = pack.header();
  idx_t column = 0;
  const auto text = [&](const std::string& value, bool known = true) {
    known ? write_text(chunk, column, row, value) : write_null(chunk, column, row);
    ++column;
  };
  const auto number = [&](uint64_t value) { write_integer(chunk, column++, row, value); };
  text(pack.path());
  text(header.payload_type, !header.payload_type.empty());
  text(header.codec.name, header.names_codec);
  text(header.codec.params, header.names_codec);
  text(header.text);
  number(header.num_records);
  number(header.num_slides);
  number(header.slide_table.length);
  number(header.index_table.length);
  number(header.data.length);
  number(pack.source().size());
}

void write_error(duckdb_data_chunk chunk, idx_t row, const std::string& path, const Error& error) {
  write_text(chunk, 0, row, path);
  for (idx_t column = 1; column < error_column; ++column) write_null(chunk, column, row);
  write_text(chunk, error_column, row, error.reason());
}

void write(duckdb_data_chunk chunk, idx_t row, const Plan& plan, const std::string& path,
           const PackOpener& opener) {
  std::shared_ptr<const Pack> pack;
  try {
    pack = opener.open(path, false);
  } catch (const Error& error) {
    if (!plan.ignore_errors || is_forbidden(error)) throw;
    return write_error(chunk, row, path, error);
  }
  write(chunk, row, *pack);
  if (plan.ignore_errors) write_null(chunk, error_column, row);
}

void bind(duckdb_bind_info info) {
  auto plan = std::make_unique<Plan>(Plan{bind_packs(info), bind_flag(info, "ignore_errors")});
  const LogicalType text = logical_type(DUCKDB_TYPE_VARCHAR);
  const LogicalType number = logical_type(DUCKDB_TYPE_BIGINT);
  for (const char* name : texts) duckdb_bind_add_result_column(info, name, text.get());
  for (const char* name : numbers) duckdb_bind_add_result_column(info, name, number.get());
  if (plan->ignore_errors) duckdb_bind_add_result_column(info, "error", text.get());
  duckdb_bind_set_cardinality(info, plan->packs.paths.size(), true);
  duckdb_bind_set_bind_data(info, plan.release(), delete_state<Plan>);
}

void init(duckdb_init_info info) {
  auto listing = std::make_unique<Listing>();
  listing->plan = static_cast<const Plan*>(duckdb_init_get_bind_data(info));
  duckdb_init_set_init_data(info, listing.release(), delete_state<Listing>);
}

void next(duckdb_function_info info, duckdb_data_chunk chunk) {
  auto& listing = *static_cast<Listing*>(duckdb_function_get_init_data(info));
  const PackList& packs = listing.plan->packs;
  const size_t count = std::min<size_t>(packs.paths.size() - listing.next, duckdb_vector_size());
  const PackOpener opener(packs.context.get());
  for (size_t row = 0; row < count; ++row) {
    write(chunk, row, *listing.plan, packs.paths[listing.next++], opener);
  }
  duckdb_data_chunk_set_size(chunk, count);
}

}  // namespace

void register_info(duckdb_connection connection) {
  static constexpr Option options[] = {{"ignore_errors", DUCKDB_TYPE_BOOLEAN}};
  static constexpr TableFunction function{
      .name = "iac_info", .options = options, .bind = bind, .init = init, .next = next};
  register_table_function(connection, function);
}

}  // namespace iac::duckdb
