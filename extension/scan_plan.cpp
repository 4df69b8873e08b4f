#include "scan_plan.h"

#include <iac/error.h>
#include <iac/workers.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "packs.h"
#include "settings.h"

namespace iac::duckdb {
namespace {

bool flag(duckdb_bind_info info, const char* name) {
  const Value value(duckdb_bind_get_named_parameter(info, name));
  return value && !duckdb_is_null_value(value.get()) && duckdb_get_bool(value.get());
}

// The column's name: true and false are taken as well.
std::string filename_option(duckdb_bind_info info) {
  const Value value(duckdb_bind_get_named_parameter(info, "filename"));
  if (!value || duckdb_is_null_value(value.get())) return "";
  switch (duckdb_get_type_id(duckdb_get_value_type(value.get()))) {
    case DUCKDB_TYPE_BOOLEAN:
      return duckdb_get_bool(value.get()) ? "filename" : "";
    case DUCKDB_TYPE_VARCHAR:
      return take_text(duckdb_get_varchar(value.get()));
    default:
      throw Error(Error::Kind::argument,
                  "iac_scan: filename takes true, false or the name of the column");
  }
}

// Of more packs than are kept, the first ones: each of the others would push out the next.
bool is_kept(const ScanPlan& plan, size_t pack) { return pack < plan.kept_packs; }

// Finds the columns of each pack. Most packs have the same ones, which are kept once.
void find_shapes(ScanPlan& plan) {
  std::mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<Shape>> known;
  plan.packs.resize(plan.files.size());
  plan.kept_packs = cache_packs(plan.context.get());
  const unsigned threads = duckdb_threads(plan.context.get());
  parallel_for(plan.files.size(), worker_count(threads, plan.files.size()), [&](size_t i) {
    const auto pack = open_pack(plan.context.get(), plan.files[i].path, is_kept(plan, i));
    try {
      std::vector<PackColumn> columns = pack_columns(*pack, plan.options.layout);
      std::string text = signature(columns);
      const std::lock_guard lock(mutex);
      std::unique_ptr<Shape>& shape = known[text];
      if (!shape) {
        add_types(*pack, columns);
        shape = std::make_unique<Shape>(Shape{std::move(text), i, std::move(columns), {}});
      }
      shape->first_pack = std::min(shape->first_pack, i);
      plan.packs[i] = {shape.get(), pack->num_records(), pack->source().identity()};
    } catch (Error& error) {
      throw std::move(error).in(pack->path());
    }
  });
  for (auto& [text, shape] : known) plan.shapes.push_back(std::move(shape));
  std::sort(plan.shapes.begin(), plan.shapes.end(),
            [](const auto& a, const auto& b) { return a->first_pack < b->first_pack; });
}

}  // namespace

std::shared_ptr<const Pack> ScanPlan::open(size_t pack) const {
  auto opened = open_pack(context.get(), files[pack].path, is_kept(*this, pack));
  const PlannedPack& planned = packs[pack];
  if (opened->source().identity() == planned.identity) return opened;
  try {
    if (signature(pack_columns(*opened, options.layout)) == planned.shape->signature) {
      return opened;
    }
  } catch (Error& error) {
    throw std::move(error).in(opened->path());
  }
  throw Error(Error::Kind::stale,
              "the pack was replaced by one with other columns, prepare the query again")
      .in(opened->path());
}

std::unique_ptr<ScanPlan> plan_scan(duckdb_bind_info info) {
  auto plan = std::make_unique<ScanPlan>();
  duckdb_table_function_get_client_context(info, plan->context.out());
  plan->options.layout = flag(info, "layout");
  plan->options.filename = filename_option(info);
  plan->options.partitions = flag(info, "hive_partitioning");
  const Value argument(duckdb_bind_get_parameter(info, 0));
  plan->files = pack_files(plan->context.get(), argument.get(), "iac_scan");
  if (plan->options.partitions) plan->partitions = find_partitions(plan->files);
  find_shapes(*plan);
  plan->columns = join_columns(plan->shapes, plan->files, plan->options, plan->partitions);
  return plan;
}

}  // namespace iac::duckdb
