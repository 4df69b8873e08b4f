#include "resolve.h"

#include <iac/error.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nulls.h"
#include "pieces.h"
#include "referenced_packs.h"
#include "strings.h"
#include "values.h"

namespace iac::duckdb {
namespace {

constexpr size_t max_packs = 16;  // that all threads keep open, for each costs a descriptor
// What is decoded at a time: so little that it is copied to the vector while the caches have it,
// but enough records to share among threads. Those behind a network are fetched together.
constexpr uint64_t local_piece_bytes = uint64_t{4} << 20;
constexpr size_t piece_records = 8;
constexpr uint64_t decoded_ratio = 16;  // that a piece of more than piece_records may have

// The records need more than they may.
struct OverBudget : Error {
  using Error::Error;
};

// What one thread keeps while a query runs.
struct Worker {
  ClientContext context;
  ReadSettings settings;
  std::optional<ReferenceReader> reader;
  ReferencedPacks packs{std::max<size_t>(1, max_packs / duckdb_threads(context.get()))};
};

std::vector<idx_t> missing_slots(const std::vector<std::optional<Reference>>& references) {
  std::vector<idx_t> slots;
  for (size_t i = 0; i < references.size(); ++i) {
    if (!references[i]) slots.push_back(i);
  }
  return slots;
}

// The texts of a vector. Where there is none the reference is forgotten, so that the result is
// NULL.
std::vector<std::string_view> read_texts(duckdb_vector vector,
                                         std::vector<std::optional<Reference>>& references) {
  std::vector<std::string_view> texts(references.size());
  const uint64_t* const mask = duckdb_vector_get_validity(vector);
  const duckdb_string_t* const strings = strings_of(vector);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (is_valid(mask, i)) {
      texts[i] = text_of(strings[i]);
    } else {
      references[i].reset();
    }
  }
  return texts;
}

// A vector that is used again holds the elements of its last use.
void clear_lists(duckdb_vector out) {
  const LogicalType type(duckdb_vector_get_column_type(out));
  const duckdb_type id = duckdb_get_type_id(type.get());
  if (id == DUCKDB_TYPE_LIST) duckdb_list_vector_set_size(out, 0);
  if (id != DUCKDB_TYPE_STRUCT) return;
  for (idx_t i = 0; i < duckdb_struct_type_child_count(type.get()); ++i) {
    clear_lists(duckdb_struct_vector_get_child(out, i));
  }
}

const Resolver& resolver_of(const void* extra_info) {
  return *static_cast<const Resolver*>(extra_info);
}

void write_group(const Resolver& resolver, const Worker& worker, const Pack& pack,
                 const Group& group, std::span<const std::string_view> texts, uint64_t& budget,
                 duckdb_vector out) {
  const std::span<const int64_t> rows(group.rows);
  const std::span<const idx_t> slots(group.slots);
  pack.require_rows(rows);
  const uint64_t most = pack.source().style().expensive() ? piece_bytes : local_piece_bytes;
  size_t most_records = rows.size();  // fewer once some take too much when they are decoded
  for (size_t first = 0; first < rows.size();) {
    auto piece = rows.subspan(first, std::min(most_records, rows.size() - first));
    if (resolver.reads_payloads) piece = next_piece(pack, piece, most, piece_records);
    const bool divides = resolver.reads_payloads && piece.size() > piece_records;
    const uint64_t allowed = divides ? std::min(budget, most * decoded_ratio) : budget;
    uint64_t left = allowed;
    try {
      resolver.write({resolver.name, pack, piece, slots.subspan(first, piece.size()), texts,
                      worker.settings, left},
                     out);
    } catch (const OverBudget&) {  // nothing was added to the vector
      if (allowed == budget) throw;
      most_records = std::max(piece_records, piece.size() / 2);
      continue;
    }
    budget -= allowed - left;
    first += piece.size();
  }
}

void resolve(duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {
  const auto& resolver = resolver_of(duckdb_scalar_function_get_extra_info(info));
  auto& worker = *static_cast<Worker*>(duckdb_scalar_function_get_state(info));
  const duckdb_vector records = duckdb_data_chunk_get_vector(in, 0);
  if (!worker.reader) {
    const LogicalType type(duckdb_vector_get_column_type(records));
    worker.reader.emplace(type.get());
  }
  auto references = worker.reader->read(records, duckdb_data_chunk_get_size(in));
  std::vector<std::string_view> texts;
  if (resolver.takes_text) {
    texts = read_texts(duckdb_data_chunk_get_vector(in, 1), references);
  }
  clear_lists(out);
  set_nulls(missing_slots(references), out);
  uint64_t budget = worker.settings.max_batch_bytes;
  for (const Group& group : group_by_pack(references)) {
    const auto opened = worker.packs.open(worker.context.get(), group);
    const Pack& pack = *opened;
    check_stamps(pack, group);
    try {
      write_group(resolver, worker, pack, group, texts, budget, out);
    } catch (Error& error) {
      throw std::move(error).in(pack.path());
    }
  }
}

// Refuses an argument that is no reference while the query is planned. That of a macro that is
// being created has no type yet, nor has a parameter of a prepared statement: both are bound again.
void bind(duckdb_bind_info info) {
  const Handle<duckdb_expression> argument(duckdb_scalar_function_bind_get_argument(info, 0));
  const LogicalType type(duckdb_expression_return_type(argument.get()));
  if (duckdb_get_type_id(type.get()) != DUCKDB_TYPE_INVALID) ReferenceReader checked(type.get());
}

void init(duckdb_init_info info) {
  auto worker = std::make_unique<Worker>();
  duckdb_scalar_function_init_get_client_context(info, worker->context.out());
  worker->settings = read_settings(worker->context.get());
  duckdb_scalar_function_init_set_state(info, worker.release(), delete_state<Worker>);
}

}  // namespace

// Runs what reads, telling apart a record that fails from too many of them.
template <class Read>
auto Records::within_budget(Read read) const {
  try {
    return read();
  } catch (const Error& error) {
    const bool too_large = error.kind() == Error::Kind::argument && error.row() < 0;
    if (too_large) refuse();
    throw;
  }
}

ReadOptions Records::options() const {
  ReadOptions options = settings.options();
  options.limits.batch_bytes = std::max<uint64_t>(budget_, 1);
  return options;
}

Batch Records::read(bool decode) const {
  ReadOptions options = this->options();
  options.decode = decode;
  return read(options);
}

Batch Records::read_text() const {
  ReadOptions options = this->options();
  options.text = true;
  return read(options);
}

Batch Records::read_images() const {
  ReadOptions options = this->options();
  options.images = true;
  return read(options);
}

Batch Records::read(const ReadOptions& options) const {
  Batch batch = within_budget([&] { return pack.read(rows, options); });
  count(batch.data.size());
  return batch;
}

std::vector<dicom::RowHeader> Records::read_headers() const {
  const dicom::Headers& headers = pack.dicom_headers();
  return within_budget([&] { return headers.read(rows, options()); });
}

void Records::count(uint64_t bytes) const {
  if (bytes > budget_) refuse();
  budget_ -= bytes;
}

void Records::refuse() const {
  throw OverBudget(
      Error::Kind::argument,
      std::string(function_) + ": the payloads of one vector of rows are larger than " +
          max_batch_bytes_setting + " = " + std::to_string(settings.max_batch_bytes) +
          "; raise that setting, or select the records and decode them outside SQL with "
          "iac_query.decode()");
}

void write_bytes(const Records& records, const Batch& batch, duckdb_vector out) {
  write_strings(out, reinterpret_cast<const char*>(batch.data.data()), batch.data.size(),
                reinterpret_cast<const uint64_t*>(batch.offsets.data()), batch.count,
                [&](size_t i) { return records.slots[i]; });
}

void register_resolver(duckdb_connection connection, const Resolver& resolver) {
  const Handle<duckdb_scalar_function> function(duckdb_create_scalar_function());
  // Any type: a struct's fields may come in any order, with rows of any integer type.
  const LogicalType any = logical_type(DUCKDB_TYPE_ANY);
  const LogicalType result = resolver.result();
  duckdb_scalar_function_set_name(function.get(), resolver.name);
  duckdb_scalar_function_add_parameter(function.get(), any.get());
  if (resolver.takes_text) {
    const LogicalType text = logical_type(DUCKDB_TYPE_VARCHAR);
    duckdb_scalar_function_add_parameter(function.get(), text.get());
  }
  duckdb_scalar_function_set_return_type(function.get(), result.get());
  duckdb_scalar_function_set_extra_info(function.get(), const_cast<Resolver*>(&resolver), nullptr);
  duckdb_scalar_function_set_bind(function.get(), [](duckdb_bind_info info) {
    guarded([&](const char* text) { duckdb_scalar_function_bind_set_error(info, text); },
            [&] { bind(info); });
  });
  duckdb_scalar_function_set_init(function.get(), [](duckdb_init_info info) {
    guarded([&](const char* text) { duckdb_scalar_function_init_set_error(info, text); },
            [&] { init(info); });
  });
  duckdb_scalar_function_set_function(
      function.get(), [](duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {
        guarded([&](const char* text) { duckdb_scalar_function_set_error(info, text); },
                [&] { resolve(info, in, out); });
      });
  if (duckdb_register_scalar_function(connection, function.get()) != DuckDBSuccess) {
    throw Error(Error::Kind::argument, std::string("cannot register ") + resolver.name);
  }
}

}  // namespace iac::duckdb
