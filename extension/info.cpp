// iac_info(path): a row a pack, of what its header says.
#include <iac/error.h>

#include <algorithm>

#include "functions.h"
#include "packs.h"
#include "table_function.h"

namespace iac::duckdb {
namespace {

struct Listing {
  const PackList* packs;
  size_t next = 0;
};

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

void bind(duckdb_bind_info info) {
  auto packs = std::make_unique<PackList>(bind_packs(info));
  const LogicalType text = logical_type(DUCKDB_TYPE_VARCHAR);
  const LogicalType number = logical_type(DUCKDB_TYPE_BIGINT);
  for (const char* name : {"path", "payload_type", "codec", "codec_params", "header"}) {
    duckdb_bind_add_result_column(info, name, text.get());
  }
  for (const char* name : {"num_records", "num_slides", "slide_table_bytes", "index_table_bytes",
                           "data_bytes", "file_size"}) {
    duckdb_bind_add_result_column(info, name, number.get());
  }
  duckdb_bind_set_cardinality(info, packs->paths.size(), true);
  duckdb_bind_set_bind_data(info, packs.release(), delete_state<PackList>);
}

void init(duckdb_init_info info) {
  auto listing = std::make_unique<Listing>();
  listing->packs = static_cast<const PackList*>(duckdb_init_get_bind_data(info));
  duckdb_init_set_init_data(info, listing.release(), delete_state<Listing>);
}

void next(duckdb_function_info info, duckdb_data_chunk chunk) {
  auto& listing = *static_cast<Listing*>(duckdb_function_get_init_data(info));
  const PackList& packs = *listing.packs;
  const size_t count = std::min<size_t>(packs.paths.size() - listing.next, duckdb_vector_size());
  const CacheLimits limits(packs.context.get());
  for (size_t row = 0; row < count; ++row) {
    write(chunk, row, *open_pack(packs.context.get(), packs.paths[listing.next++], limits, false));
  }
  duckdb_data_chunk_set_size(chunk, count);
}

}  // namespace

void register_info(duckdb_connection connection) {
  static constexpr TableFunction function{
      .name = "iac_info", .bind = bind, .init = init, .next = next};
  register_table_function(connection, function);
}

}  // namespace iac::duckdb
