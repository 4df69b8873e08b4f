// The tables of packs, by a path, a pattern or a list of both:
//   iac_scan(path, layout := false, filename := false, hive_partitioning := false, hive_types :=
//   {}) iac_slides(path, filename := false, hive_partitioning := false, hive_types := {})
#include <iac/dicom/headers.h>
#include <iac/error.h>
#include <iac/workers.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <numeric>

#include "functions.h"
#include "nulls.h"
#include "places.h"
#include "record.h"
#include "scan_plan.h"
#include "settings.h"
#include "strings.h"
#include "table_function.h"

namespace iac::duckdb {
namespace {

// Rows that a thread takes at a time: as many vectors as a row group of DuckDB's own has, or more
// of a pack that has very many.
constexpr int64_t vectors_a_morsel = 60;
constexpr int64_t max_morsels_a_pack = 1 << 10;

// The columns in use of one record batch, read by the first thread that comes to it.
struct SharedBatch {
  std::mutex mutex;
  std::weak_ptr<const Columns> columns;
};

// A pack while its rows are read.
struct OpenPack {
  std::shared_ptr<const Pack> pack;
  const Shape* shape = nullptr;
  // That are read, by position in their table: of the rows scanned, and of their slides.
  std::vector<size_t> own_columns, slide_columns;
  std::optional<SlideKey> key;
  std::optional<SlideLookup> slides;  // when a column of the slide table is read
  std::optional<wsi::Grid> grid;      // when places of tiles are
  PlaceColumns places;
  std::deque<SharedBatch> batches;
};

// A pack is opened by the first thread that comes to it, and closed behind the last: however many
// there are, as many as threads are open.
struct ScannedPack {
  std::mutex mutex;
  std::shared_ptr<OpenPack> open;
  size_t morsels = 0;  // not done yet
};

// Neighbouring rows of a pack. The last morsel of each goes on to the pack's end, which is where
// it was when the scan was planned unless the pack was replaced.
struct Morsel {
  size_t pack;
  int64_t begin, end;
};

// What all threads hold of tables while they read them.
class TableMemory {
 public:
  explicit TableMemory(uint64_t most) : most_(most) {}

  // Counts the columns as long as they live. Throws Error when there are more than there may be.
  std::shared_ptr<const Columns> hold(Columns columns) const {
    uint64_t bytes = 0;
    for (const auto& column : columns) bytes += column ? column->bytes() : 0;
    auto owned = std::make_unique<Columns>(std::move(columns));
    const uint64_t all = *held_ += bytes;
    std::shared_ptr<const Columns> counted(owned.release(),
                                           [held = held_, bytes](const Columns* dropped) {
                                             delete dropped;
                                             *held -= bytes;
                                           });
    if (all <= most_) return counted;
    throw Error(Error::Kind::argument,
                "the columns that this query reads at once are larger than half of DuckDB's "
                "memory_limit; raise it, select fewer columns, or set fewer threads");
  }

 private:
  const uint64_t most_;
  const std::shared_ptr<std::atomic<uint64_t>> held_ = std::make_shared<std::atomic<uint64_t>>(0);
};

struct Scan {
  explicit Scan(duckdb_client_context context)
      : opener(context), memory(memory_limit(context) / 2) {}

  const PackOpener opener;
  std::vector<size_t> columns;  // of the plan, as the chunk wants them
  std::vector<Morsel> morsels;
  std::deque<ScannedPack> packs;
  std::atomic<size_t> next_morsel{0};
  TableMemory memory;
};

// What one thread works on.
struct Worker {
  size_t pack = 0;
  std::shared_ptr<OpenPack> open;
  int64_t row = 0, end = 0;  // what is left of the morsel, in the pack
  // Where `row` is.
  size_t batch = SIZE_MAX;
  int64_t row_in_batch = 0;
  std::shared_ptr<const Columns> own;  // columns of the batch
  size_t slide_batch = SIZE_MAX;
  std::shared_ptr<const Columns> slides;  // of slide_batch
  std::vector<int64_t> slide_rows;
};

template <PackColumn::Source table>
void bind(duckdb_bind_info info) {
  auto plan = plan_scan(info, function_name(info), table);
  for (const ScanColumn& column : plan->columns) {
    duckdb_bind_add_result_column(info, column.name.c_str(), column.type());
  }
  uint64_t rows = 0;
  for (const auto& pack : plan->packs) rows += static_cast<uint64_t>(pack.rows);
  duckdb_bind_set_cardinality(info, rows, true);
  duckdb_bind_set_bind_data(info, plan.release(), delete_state<ScanPlan>);
}

void add_morsels(Scan& scan, size_t pack, int64_t rows) {
  const int64_t least = vectors_a_morsel * static_cast<int64_t>(duckdb_vector_size());
  const int64_t size = std::max(least, rows / max_morsels_a_pack);
  ScannedPack& scanned = scan.packs.emplace_back();
  int64_t begin = 0;
  do {
    const bool is_last = rows - begin <= size;
    const int64_t end = is_last ? INT64_MAX : begin + size;
    scan.morsels.push_back({pack, begin, end});
    ++scanned.morsels;
    begin = end;
  } while (begin < rows);
}

void init(duckdb_init_info info) {
  const auto& plan = *static_cast<const ScanPlan*>(duckdb_init_get_bind_data(info));
  auto scan = std::make_unique<Scan>(plan.context.get());
  for (idx_t i = 0; i < duckdb_init_get_column_count(info); ++i) {
    scan->columns.push_back(duckdb_init_get_column_index(info, i));
    const ScanColumn& column = plan.columns[scan->columns.back()];
    if (!column.problem.empty()) {
      rethrow_in(Error(Error::Kind::argument, column.problem), column.name,
                 plan.files[column.problem_pack].path);
    }
  }
  for (size_t i = 0; i < plan.packs.size(); ++i) add_morsels(*scan, i, plan.packs[i].rows);
  duckdb_init_set_max_threads(info, scan->morsels.size());
  duckdb_init_set_init_data(info, scan.release(), delete_state<Scan>);
}

void init_worker(duckdb_init_info info) {
  duckdb_init_set_init_data(info, new Worker, delete_state<Worker>);
}

// What the packs of a shape have for a column of the scan, if anything.
const PackColumn* source_of(const Shape& shape, size_t column) {
  const auto position = shape.sources[column];
  return position ? &shape.columns[*position] : nullptr;
}

// Gets ready what places of tiles are computed from.
void add_places(OpenPack& open) {
  if (open.grid) return;
  try {
    open.grid = wsi::read_grid(*open.pack);
  } catch (Error& error) {
    throw std::move(error).in(open.pack->path());
  }
  open.places = find_places(*open.pack).value();
  open.own_columns.push_back(open.places.tile_x);
  open.own_columns.push_back(open.places.tile_y);
  if (open.places.level) open.own_columns.push_back(*open.places.level);
}

std::shared_ptr<OpenPack> open_pack(const ScanPlan& plan, const Scan& scan, size_t pack) {
  auto open = std::make_shared<OpenPack>();
  open->pack = plan.open(pack, scan.opener);
  open->shape = plan.packs[pack].shape;
  for (const size_t column : scan.columns) {
    if (plan.columns[column].source != ScanColumn::Source::table) continue;
    const PackColumn* source = source_of(*open->shape, column);
    if (source == nullptr || source->source == PackColumn::Source::patient_id) continue;
    if (source->source == PackColumn::Source::place) {
      add_places(*open);
      continue;
    }
    const bool is_own = source->source == plan.options.table;
    (is_own ? open->own_columns : open->slide_columns).push_back(source->position);
  }
  if (!open->slide_columns.empty()) {
    try {
      open->key = find_slide_key(*open->pack);
      open->slides.emplace(*open->pack, open->key);
    } catch (Error& error) {
      throw std::move(error).in(open->pack->path());
    }
    if (open->key) open->own_columns.push_back(open->key->index_column);
  }
  for (auto* positions : {&open->own_columns, &open->slide_columns}) {
    std::sort(positions->begin(), positions->end());
    positions->erase(std::unique(positions->begin(), positions->end()), positions->end());
  }
  open->batches.resize(plan.rows_of(*open->pack).num_batches());
  return open;
}

// Ends the worker's morsel and begins the next one that has rows; whether there is one.
bool next_morsel(const ScanPlan& plan, Scan& scan, Worker& worker) {
  while (worker.row >= worker.end) {
    if (worker.open) {
      ScannedPack& scanned = scan.packs[worker.pack];
      const std::lock_guard lock(scanned.mutex);
      if (--scanned.morsels == 0) scanned.open = nullptr;
    }
    const size_t next = scan.next_morsel.fetch_add(1);
    if (next >= scan.morsels.size()) {
      worker = {};
      return false;
    }
    const Morsel& morsel = scan.morsels[next];
    ScannedPack& scanned = scan.packs[morsel.pack];
    const std::lock_guard lock(scanned.mutex);
    if (!scanned.open) scanned.open = open_pack(plan, scan, morsel.pack);
    if (worker.open != scanned.open) {
      worker = {};
      worker.open = scanned.open;
    }
    worker.pack = morsel.pack;
    worker.row = morsel.begin;
    worker.end = std::min(morsel.end, plan.rows_of(*worker.open->pack).num_rows());
  }
  return true;
}

std::shared_ptr<const Columns> own_columns(const Scan& scan, OpenPack& open, const Table& table,
                                           size_t batch) {
  SharedBatch& shared = open.batches[batch];
  const std::lock_guard lock(shared.mutex);
  if (auto columns = shared.columns.lock()) return columns;
  auto columns = scan.memory.hold(read_columns(table, batch, open.own_columns));
  shared.columns = columns;
  return columns;
}

// Makes the columns ready for the next rows, at most `count` of one batch. Their number.
size_t find_rows(const ScanPlan& plan, const Scan& scan, Worker& worker, size_t count) {
  const Table& table = plan.rows_of(*worker.open->pack);
  const auto [batch, row] = table.locate(worker.row);
  if (worker.batch != batch) {
    worker.own = nullptr;  // before the next ones come
    worker.own = own_columns(scan, *worker.open, table, batch);
    worker.batch = batch;
  }
  worker.row_in_batch = row;
  const int64_t left = std::min(worker.end - worker.row, table.batch_rows(batch) - row);
  return static_cast<size_t>(std::min(static_cast<int64_t>(count), left));
}

// Finds the slides of the next rows and makes the slide columns ready: a chunk ends before a row
// whose slide lies in another record batch. The number of rows left in the chunk.
size_t find_slides(const Scan& scan, Worker& worker, size_t count) {
  const OpenPack& open = *worker.open;
  const Table& slides = *open.pack->slides();
  worker.slide_rows.resize(count);
  const Column* keys = open.key ? (*worker.own)[open.key->index_column].get() : nullptr;
  open.slides->find(keys, worker.row_in_batch, worker.slide_rows);

  size_t batch = SIZE_MAX;
  for (size_t i = 0; i < count; ++i) {
    int64_t& row = worker.slide_rows[i];
    if (row < 0) continue;
    const auto [row_batch, row_in_batch] = slides.locate(row);
    if (batch != SIZE_MAX && row_batch != batch) {
      count = i;
      break;
    }
    batch = row_batch;
    row = row_in_batch;
  }
  worker.slide_rows.resize(count);
  if (batch == SIZE_MAX) batch = 0;  // no slide at all: every batch has the right columns
  if (worker.slide_batch != batch) {
    worker.slides = nullptr;  // before the next ones come
    worker.slides =
        scan.memory.hold(slides.num_batches() > 0 ? read_columns(slides, batch, open.slide_columns)
                                                  : Columns(slides.num_columns()));
    worker.slide_batch = batch;
  }
  return count;
}

void fill_nulls(const PackColumn& column, size_t count, duckdb_vector vector) {
  const std::vector<int64_t> nowhere(count, -1);
  column.type.fill(column.type, *column.no_rows.get(), Rows(nowhere), vector);
}

void fill_patient_ids(const Worker& worker, size_t count, duckdb_vector vector) {
  std::vector<int64_t> rows(count);
  std::iota(rows.begin(), rows.end(), worker.row);
  const auto ids = worker.open->pack->dicom_headers().patient_ids(rows, {});
  std::vector<uint64_t> places{0};
  std::string texts;
  std::vector<idx_t> missing;
  for (size_t i = 0; i < count; ++i) {
    if (!ids[i]) missing.push_back(i);
    texts += ids[i].value_or("");
    places.push_back(texts.size());
  }
  write_strings(vector, texts.data(), texts.size(), places.data(), count,
                [](size_t i) { return i; });
  set_nulls(missing, vector);
}

void fill_from_table(const ScanPlan& plan, const PackColumn& column, const Worker& worker,
                     size_t count, duckdb_vector vector) {
  if (column.source == PackColumn::Source::place) {
    const OpenPack& open = *worker.open;
    return fill_places(column, *open.grid, open.places, *worker.own, worker.row_in_batch, count,
                       vector);
  }
  if (column.source == PackColumn::Source::patient_id) {
    return fill_patient_ids(worker, count, vector);
  }
  if (column.source == plan.options.table) {
    const Column& values = *(*worker.own)[column.position];
    return column.type.fill(column.type, values.view(), Rows(worker.row_in_batch, count), vector);
  }
  const auto& values = (*worker.slides)[column.position];
  if (!values) return fill_nulls(column, count, vector);  // a slide table without record batches
  column.type.fill(column.type, values->view(), Rows(worker.slide_rows), vector);
}

void fill_column(const ScanPlan& plan, size_t position, const Worker& worker, size_t count,
                 duckdb_vector vector) {
  const ScanColumn& column = plan.columns[position];
  switch (column.source) {
    case ScanColumn::Source::table: {
      const PackColumn* const source = source_of(*worker.open->shape, position);
      if (source == nullptr) return fill_nulls(*column.sample, count, vector);
      return fill_from_table(plan, *source, worker, count, vector);
    }
    case ScanColumn::Source::record:
      return fill_records(*worker.open->pack, worker.row, count, vector);
    case ScanColumn::Source::filename:
      return fill_text(plan.files[worker.pack].filename, count, vector);
    case ScanColumn::Source::partition:
      return fill_partition(plan.partitions.values[worker.pack][column.partition],
                            plan.partitions.types[column.partition], count, vector);
  }
}

void next_chunk(duckdb_function_info info, duckdb_data_chunk chunk) {
  const auto& plan = *static_cast<const ScanPlan*>(duckdb_function_get_bind_data(info));
  Scan& scan = *static_cast<Scan*>(duckdb_function_get_init_data(info));
  Worker& worker = *static_cast<Worker*>(duckdb_function_get_local_init_data(info));
  if (!next_morsel(plan, scan, worker)) return duckdb_data_chunk_set_size(chunk, 0);
  const std::string& path = worker.open->pack->path();
  size_t count = duckdb_vector_size();
  try {
    count = find_rows(plan, scan, worker, count);
    if (worker.open->slides) count = find_slides(scan, worker, count);
  } catch (Error& error) {
    throw std::move(error).in(path);
  }
  for (size_t i = 0; i < scan.columns.size(); ++i) {
    try {
      fill_column(plan, scan.columns[i], worker, count, duckdb_data_chunk_get_vector(chunk, i));
    } catch (const Error& error) {
      rethrow_in(error, plan.columns[scan.columns[i]].name, path);
    }
  }
  worker.row += static_cast<int64_t>(count);
  duckdb_data_chunk_set_size(chunk, count);
}

}  // namespace

void register_scan(duckdb_connection connection) {
  static constexpr Option options[] = {{"layout", DUCKDB_TYPE_BOOLEAN},
                                       {"filename", DUCKDB_TYPE_ANY},
                                       {"hive_partitioning", DUCKDB_TYPE_BOOLEAN},
                                       {"hive_types", DUCKDB_TYPE_ANY}};
  static constexpr TableFunction scan{.name = "iac_scan",
                                      .options = options,
                                      .bind = bind<PackColumn::Source::index>,
                                      .init = init,
                                      .init_worker = init_worker,
                                      .next = next_chunk,
                                      .picks_columns = true};
  static constexpr TableFunction slides{.name = "iac_slides",
                                        .options = std::span(options).subspan(1),
                                        .bind = bind<PackColumn::Source::slides>,
                                        .init = init,
                                        .init_worker = init_worker,
                                        .next = next_chunk,
                                        .picks_columns = true};
  register_table_function(connection, scan);
  register_table_function(connection, slides);
}

}  // namespace iac::duckdb
