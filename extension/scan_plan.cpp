#include "scan_plan.h"

#include <iac/error.h>
#include <iac/remote.h>
#include <iac/workers.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "paths.h"
#include "settings.h"
#include "table_function.h"

namespace iac::duckdb {
namespace {

// The column's name: true and false are taken as well.
std::string filename_option(duckdb_bind_info info, const std::string& function) {
  const Value value(duckdb_bind_get_named_parameter(info, "filename"));
  if (!value || duckdb_is_null_value(value.get())) return "";
  switch (duckdb_get_type_id(duckdb_get_value_type(value.get()))) {
    case DUCKDB_TYPE_BOOLEAN:
      return duckdb_get_bool(value.get()) ? "filename" : "";
    case DUCKDB_TYPE_VARCHAR:
      return take_text(duckdb_get_varchar(value.get()));
    default:
      throw Error(Error::Kind::argument,
                  function + ": filename takes true, false or the name of the column");
  }
}

PartitionTypes partition_types(duckdb_bind_info info) {
  const Value value(duckdb_bind_get_named_parameter(info, "hive_types"));
  if (!value || duckdb_is_null_value(value.get())) return {};
  return read_partition_types(value.get());
}

// Of more packs than are kept, the first ones: each of the others would push out the next.
bool is_kept(const PackOpener& opener, size_t pack) { return pack < opener.kept(); }

std::vector<PackColumn> columns_of(const Pack& pack, const ScanOptions& options) {
  return options.table == PackColumn::Source::index ? index_columns(pack, options.layout)
                                                    : slide_columns(pack);
}

// Finds the columns of each pack. Most packs have the same ones, which are kept once.
void find_shapes(ScanPlan& plan) {
  std::mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<Shape>> known;
  plan.packs.resize(plan.files.size());
  const PackOpener opener(plan.context.get());
  const auto look_at = [&](size_t i) {
    const auto pack = opener.open(plan.files[i].path, is_kept(opener, i));
    try {
      std::vector<PackColumn> columns = columns_of(*pack, plan.options);
      std::string text = signature(columns);
      const std::lock_guard lock(mutex);
      std::unique_ptr<Shape>& shape = known[text];
      if (!shape) {
        add_types(*pack, columns);
        shape = std::make_unique<Shape>(Shape{std::move(text), i, std::move(columns), {}});
      }
      shape->first_pack = std::min(shape->first_pack, i);
      plan.packs[i] = {shape.get(), plan.rows_of(*pack).num_rows(), pack->source().identity()};
    } catch (Error& error) {
      throw std::move(error).in(pack->path());
    }
  };
  const size_t count = plan.files.size();
  const bool any_url = std::any_of(plan.files.begin(), plan.files.end(),
                                   [](const PackFile& file) { return is_url(file.path); });
  if (any_url) {
    concurrent_for(count, remote_style.at_once, look_at);
  } else {
    parallel_for(count, worker_count(duckdb_threads(plan.context.get()), count), look_at);
  }
  for (auto& [text, shape] : known) plan.shapes.push_back(std::move(shape));
  std::sort(plan.shapes.begin(), plan.shapes.end(),
            [](const auto& a, const auto& b) { return a->first_pack < b->first_pack; });
}

}  // namespace

std::shared_ptr<const Pack> ScanPlan::open(size_t pack, const PackOpener& opener) const {
  auto opened = opener.open(files[pack].path, is_kept(opener, pack));
  const PlannedPack& planned = packs[pack];
  if (opened->source().identity() == planned.identity) return opened;
  try {
    if (signature(columns_of(*opened, options)) == planned.shape->signature) {
      return opened;
    }
  } catch (Error& error) {
    throw std::move(error).in(opened->path());
  }
  throw Error(Error::Kind::stale,
              "the pack was replaced by one with other columns, prepare the query again")
      .in(opened->path());
}

std::unique_ptr<ScanPlan> plan_scan(duckdb_bind_info info, const char* function,
                                    PackColumn::Source table) {
  auto plan = std::make_unique<ScanPlan>();
  duckdb_table_function_get_client_context(info, plan->context.out());
  plan->options.function = function;
  plan->options.table = table;
  plan->options.layout = bind_flag(info, "layout");
  plan->options.filename = filename_option(info, function);
  const PartitionTypes types = partition_types(info);
  plan->options.partitions = bind_flag(info, "hive_partitioning") || !types.empty();
  const Value argument(duckdb_bind_get_parameter(info, 0));
  plan->files = pack_files(plan->context.get(), argument.get(), function);
  if (plan->options.partitions) plan->partitions = find_partitions(plan->files, types);
  find_shapes(*plan);
  plan->columns = join_columns(plan->shapes, plan->files, plan->options, plan->partitions);
  if (plan->columns.empty()) {
    throw Error(Error::Kind::argument, std::string(function) + ": the slide table has no columns")
        .in(plan->files.front().path);
  }
  return plan;
}

}  // namespace iac::duckdb
