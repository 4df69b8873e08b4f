#include "resolve.h"

#include <iac/error.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "packs.h"
#include "record.h"
#include "settings.h"
#include "strings.h"

namespace iac::duckdb {
namespace {

// What one thread keeps while a query runs. A pack that it has opened stays the one it was.
struct Worker {
  ClientContext context;
  uint64_t max_bytes = 0;
  unsigned threads = 1;
  std::optional<ReferenceReader> reader;
  std::map<std::string, std::shared_ptr<const Pack>, std::less<>> packs;

  const Pack& open(std::string_view path) {
    if (const auto found = packs.find(path); found != packs.end()) return *found->second;
    if (packs.size() >= std::max(1U, max_packs / threads)) packs.clear();
    const std::string absolute = pack_path(context.get(), std::string(path));
    return *packs.emplace(path, open_pack(context.get(), absolute)).first->second;
  }

  static constexpr unsigned max_packs = 16;  // of all threads, for each costs a descriptor
};

// The references of a vector that go to one pack.
struct Group {
  std::string_view path;
  std::vector<idx_t> slots;
  std::vector<int64_t> rows;
  std::vector<std::optional<int64_t>> stamps;
};

std::vector<Group> group_by_pack(const std::vector<std::optional<Reference>>& references) {
  std::vector<Group> groups;
  std::map<std::string_view, size_t> known;
  size_t current = 0;
  for (size_t slot = 0; slot < references.size(); ++slot) {
    if (!references[slot]) continue;
    const Reference& reference = *references[slot];
    if (groups.empty() || groups[current].path != reference.pack) {
      current = known.emplace(reference.pack, groups.size()).first->second;
      if (current == groups.size()) groups.push_back({reference.pack, {}, {}, {}});
    }
    groups[current].slots.push_back(slot);
    groups[current].rows.push_back(reference.row);
    groups[current].stamps.push_back(reference.stamp);
  }
  return groups;
}

// A reference with a stamp was made by a scan: that its row is missing, or has another stamp, says
// that the pack is not the one it was.
void check_stamps(const Pack& pack, const Group& group) {
  std::vector<int64_t> rows;
  std::vector<int64_t> stamps;
  const auto stale = [&](int64_t row) {
    return Error(Error::Kind::stale, "the pack has changed since the reference was made")
        .at(row)
        .in(pack.path());
  };
  for (size_t i = 0; i < group.rows.size(); ++i) {
    if (!group.stamps[i]) continue;
    if (group.rows[i] < 0 || group.rows[i] >= pack.num_records()) throw stale(group.rows[i]);
    rows.push_back(group.rows[i]);
    stamps.push_back(*group.stamps[i]);
  }
  if (rows.empty()) return;
  const std::vector<uint32_t> found = pack.stamps(rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (found[i] != stamps[i]) throw stale(rows[i]);
  }
}

// Reads a group's records; `budget` is what the vector may still take, and shrinks.
Batch read_group(const Pack& pack, const Group& group, const Resolver& resolver,
                 const Worker& worker, uint64_t& budget) {
  check_stamps(pack, group);
  ReadOptions options;
  options.decode = resolver.decode;
  options.workers = worker.threads;
  options.limits.batch_bytes = std::max<uint64_t>(budget, 1);
  try {
    Batch batch = pack.read(group.rows, options);
    budget -= std::min<uint64_t>(budget, batch.data.size());
    return batch;
  } catch (Error& error) {
    const bool too_large = error.kind() == Error::Kind::argument && error.row() < 0;
    if (!too_large) throw std::move(error).in(pack.path());
    throw Error(Error::Kind::argument,
                std::string(resolver.name) +
                    ": the payloads of one vector of rows are larger than " +
                    max_batch_bytes_setting + " = " + std::to_string(worker.max_bytes) +
                    "; raise that setting, or select the records and decode them outside SQL with "
                    "iac_query.decode()")
        .in(pack.path());
  }
}

// Of a struct its fields as well, as DuckDB wants it.
void set_nulls(const std::vector<std::optional<Reference>>& references, duckdb_vector out) {
  const LogicalType type(duckdb_vector_get_column_type(out));
  const duckdb_type id = duckdb_get_type_id(type.get());
  const bool is_string = id == DUCKDB_TYPE_BLOB || id == DUCKDB_TYPE_VARCHAR;
  uint64_t* mask = nullptr;
  for (size_t i = 0; i < references.size(); ++i) {
    if (references[i]) continue;
    if (mask == nullptr) {
      duckdb_vector_ensure_validity_writable(out);
      mask = duckdb_vector_get_validity(out);
    }
    mask[i / 64] &= ~(uint64_t{1} << (i % 64));
    if (is_string) strings_of(out)[i] = {};
  }
  if (mask == nullptr || id != DUCKDB_TYPE_STRUCT) return;
  for (idx_t i = 0; i < duckdb_struct_type_child_count(type.get()); ++i) {
    set_nulls(references, duckdb_struct_vector_get_child(out, i));
  }
}

const Resolver& resolver_of(const void* extra_info) {
  return *static_cast<const Resolver*>(extra_info);
}

void resolve(duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {
  const auto& resolver = resolver_of(duckdb_scalar_function_get_extra_info(info));
  auto& worker = *static_cast<Worker*>(duckdb_scalar_function_get_state(info));
  const duckdb_vector records = duckdb_data_chunk_get_vector(in, 0);
  if (!worker.reader) {
    const LogicalType type(duckdb_vector_get_column_type(records));
    worker.reader.emplace(type.get());
  }
  const auto references = worker.reader->read(records, duckdb_data_chunk_get_size(in));
  set_nulls(references, out);
  uint64_t budget = worker.max_bytes;
  for (const Group& group : group_by_pack(references)) {
    const Pack& pack = worker.open(group.path);
    const Batch batch = read_group(pack, group, resolver, worker, budget);
    try {
      resolver.write(batch, group.rows, group.slots, out);
    } catch (Error& error) {
      throw std::move(error).in(pack.path());
    }
  }
}

// Refuses an argument that is no reference while the query is planned.
void bind(duckdb_bind_info info) {
  const Handle<duckdb_expression> argument(duckdb_scalar_function_bind_get_argument(info, 0));
  const LogicalType type(duckdb_expression_return_type(argument.get()));
  const ReferenceReader checked(type.get());
}

void init(duckdb_init_info info) {
  auto worker = std::make_unique<Worker>();
  duckdb_scalar_function_init_get_client_context(info, worker->context.out());
  worker->max_bytes = max_batch_bytes(worker->context.get());
  worker->threads = duckdb_threads(worker->context.get());
  duckdb_scalar_function_init_set_state(info, worker.release(), delete_state<Worker>);
}

}  // namespace

void write_bytes(const Batch& batch, std::span<const int64_t>, std::span<const idx_t> slots,
                 duckdb_vector out) {
  write_strings(out, reinterpret_cast<const char*>(batch.data.data()), batch.data.size(),
                reinterpret_cast<const uint64_t*>(batch.offsets.data()), batch.count,
                [&](size_t i) { return slots[i]; });
}

void register_resolver(duckdb_connection connection, const Resolver& resolver) {
  const Handle<duckdb_scalar_function> function(duckdb_create_scalar_function());
  // Any type: a struct's fields may come in any order, with rows of any integer type.
  const LogicalType any = logical_type(DUCKDB_TYPE_ANY);
  const LogicalType result = resolver.result();
  duckdb_scalar_function_set_name(function.get(), resolver.name);
  duckdb_scalar_function_add_parameter(function.get(), any.get());
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
