// iac_scan(path, layout := false)
#include <iac/error.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "columns.h"
#include "functions.h"
#include "packs.h"
#include "record.h"

namespace iac::duckdb {
namespace {

// Rows that a thread takes at a time: as many vectors as a row group of DuckDB's own has.
constexpr int64_t vectors_a_morsel = 60;

// What the planner fixes: which packs, and which columns they have.
struct Plan {
  ClientContext context;
  bool layout = false;
  std::vector<std::string> paths;
  std::vector<ScanColumn> columns;
};

// One pack of a running scan.
struct ScannedPack {
  std::shared_ptr<const Pack> pack;
  std::optional<SlideKey> key;
  std::optional<SlideLookup> slides;  // when a column of the slide table is read
};

// Neighbouring rows of one record batch of one pack's index.
struct Morsel {
  size_t pack;
  size_t batch;
  int64_t begin, end;  // in the batch
  int64_t first_row;   // of the batch in the pack
};

// The columns in use of one record batch, read by the first thread that comes to it.
struct SharedBatch {
  std::mutex mutex;
  std::weak_ptr<const Columns> columns;
};

struct Scan {
  std::vector<ScannedPack> packs;
  std::vector<const ScanColumn*> columns;  // as the chunk wants them
  std::vector<Morsel> morsels;
  std::vector<std::vector<SharedBatch>> batches;  // of each pack
  std::atomic<size_t> next_morsel{0};

  bool reads(ScanColumn::Source source) const {
    return std::any_of(columns.begin(), columns.end(),
                       [&](const ScanColumn* column) { return column->source == source; });
  }
};

// What one thread works on.
struct Worker {
  Morsel morsel{};
  std::shared_ptr<const Columns> index;
  Columns slides;  // of slide_batch
  size_t slide_pack = SIZE_MAX, slide_batch = SIZE_MAX;
  std::vector<int64_t> slide_rows;
};

void bind(duckdb_bind_info info) {
  auto plan = std::make_unique<Plan>();
  duckdb_table_function_get_client_context(info, plan->context.out());
  const Value path(duckdb_bind_get_parameter(info, 0));
  if (duckdb_is_null_value(path.get())) {
    throw Error(Error::Kind::argument, "iac_scan: the path is NULL");
  }
  const Value layout(duckdb_bind_get_named_parameter(info, "layout"));
  plan->layout = layout && !duckdb_is_null_value(layout.get()) && duckdb_get_bool(layout.get());
  plan->paths.push_back(pack_path(plan->context.get(), take_text(duckdb_get_varchar(path.get()))));

  const auto pack = open_pack(plan->context.get(), plan->paths.front());
  try {
    plan->columns = scan_columns(*pack, plan->layout);
  } catch (Error& error) {
    throw std::move(error).in(pack->path());
  }
  for (const ScanColumn& column : plan->columns) {
    duckdb_bind_add_result_column(info, column.name.c_str(), column.type.logical.get());
  }
  duckdb_bind_set_cardinality(info, static_cast<idx_t>(pack->num_records()), true);
  duckdb_bind_set_bind_data(info, plan.release(), delete_state<Plan>);
}

// Opens the pack again: a prepared statement runs long after it was planned.
ScannedPack open_planned(const Plan& plan, const std::string& path, const Scan& scan) {
  ScannedPack opened;
  opened.pack = open_pack(plan.context.get(), path);
  const Pack& pack = *opened.pack;
  try {
    if (!same_columns(plan.columns, scan_columns(pack, plan.layout))) {
      throw Error(Error::Kind::stale,
                  "the pack was replaced by one with other columns, prepare the query again");
    }
    if (scan.reads(ScanColumn::Source::slides)) {
      opened.key = find_slide_key(pack);
      opened.slides.emplace(pack, opened.key);
    }
  } catch (Error& error) {
    throw std::move(error).in(pack.path());
  }
  return opened;
}

void add_morsels(Scan& scan, size_t pack) {
  const Table& index = *scan.packs[pack].pack->index();
  const int64_t rows_a_morsel = vectors_a_morsel * static_cast<int64_t>(duckdb_vector_size());
  int64_t first_row = 0;
  for (size_t batch = 0; batch < index.num_batches(); ++batch) {
    const int64_t rows = index.batch_rows(batch);
    for (int64_t begin = 0; begin < rows; begin += rows_a_morsel) {
      scan.morsels.push_back(
          {pack, batch, begin, std::min(begin + rows_a_morsel, rows), first_row});
    }
    first_row += rows;
  }
  scan.batches.emplace_back(index.num_batches());
}

void init(duckdb_init_info info) {
  const Plan& plan = *static_cast<const Plan*>(duckdb_init_get_bind_data(info));
  auto scan = std::make_unique<Scan>();
  for (idx_t i = 0; i < duckdb_init_get_column_count(info); ++i) {
    const ScanColumn& column = plan.columns[duckdb_init_get_column_index(info, i)];
    require_readable(column, plan.paths.front());
    scan->columns.push_back(&column);
  }
  for (const std::string& path : plan.paths) {
    scan->packs.push_back(open_planned(plan, path, *scan));
    add_morsels(*scan, scan->packs.size() - 1);
  }
  duckdb_init_set_max_threads(info, std::max<idx_t>(scan->morsels.size(), 1));
  duckdb_init_set_init_data(info, scan.release(), delete_state<Scan>);
}

void init_worker(duckdb_init_info info) {
  duckdb_init_set_init_data(info, new Worker, delete_state<Worker>);
}

std::vector<size_t> positions(const Scan& scan, ScanColumn::Source source) {
  std::vector<size_t> positions;
  for (const ScanColumn* column : scan.columns) {
    if (column->source == source) positions.push_back(column->position);
  }
  return positions;
}

std::shared_ptr<const Columns> index_columns(Scan& scan, const Morsel& morsel) {
  SharedBatch& shared = scan.batches[morsel.pack][morsel.batch];
  const std::lock_guard lock(shared.mutex);
  if (auto columns = shared.columns.lock()) return columns;
  const ScannedPack& scanned = scan.packs[morsel.pack];
  std::vector<size_t> wanted = positions(scan, ScanColumn::Source::index);
  if (scanned.key) wanted.push_back(scanned.key->index_column);
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  auto columns =
      std::make_shared<const Columns>(read_columns(*scanned.pack->index(), morsel.batch, wanted));
  shared.columns = columns;
  return columns;
}

// Finds the slides of the next rows and makes the slide columns ready: a chunk ends before a row
// whose slide lies in another record batch. The number of rows left in the chunk.
size_t find_slides(const Scan& scan, Worker& worker, size_t count) {
  const Morsel& morsel = worker.morsel;
  const ScannedPack& scanned = scan.packs[morsel.pack];
  const Table& slides = *scanned.pack->slides();
  worker.slide_rows.resize(count);
  const Column* keys = scanned.key ? (*worker.index)[scanned.key->index_column].get() : nullptr;
  scanned.slides->find(keys, morsel.begin, worker.slide_rows);

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
  if (worker.slide_pack != morsel.pack || worker.slide_batch != batch) {
    worker.slides = slides.num_batches() > 0
                        ? read_columns(slides, batch, positions(scan, ScanColumn::Source::slides))
                        : Columns(slides.num_columns());
    worker.slide_pack = morsel.pack;
    worker.slide_batch = batch;
  }
  return count;
}

void fill_column(const ScanColumn& column, const Pack& pack, const Worker& worker, size_t count,
                 duckdb_vector vector) {
  const Morsel& morsel = worker.morsel;
  switch (column.source) {
    case ScanColumn::Source::index: {
      const Column& values = *(*worker.index)[column.position];
      return column.type.fill(column.type, values.view(), Rows(morsel.begin, count), vector);
    }
    case ScanColumn::Source::slides: {
      if (const auto& values = worker.slides[column.position]) {
        return column.type.fill(column.type, values->view(), Rows(worker.slide_rows), vector);
      }
      // A slide table without record batches: no index row has a slide.
      nanoarrow::UniqueArrayView none;
      const ArrowSchema& field = pack.slides()->field(column.position);
      if (ArrowArrayViewInitFromSchema(none.get(), &field, nullptr) != NANOARROW_OK) {
        throw std::bad_alloc();
      }
      return column.type.fill(column.type, *none.get(), Rows(worker.slide_rows), vector);
    }
    case ScanColumn::Source::record:
      return fill_records(pack, morsel.first_row + morsel.begin, count, vector);
  }
}

void next_chunk(duckdb_function_info info, duckdb_data_chunk chunk) {
  Scan& scan = *static_cast<Scan*>(duckdb_function_get_init_data(info));
  Worker& worker = *static_cast<Worker*>(duckdb_function_get_local_init_data(info));
  Morsel& morsel = worker.morsel;
  if (morsel.begin == morsel.end) {
    const size_t next = scan.next_morsel.fetch_add(1);
    if (next >= scan.morsels.size()) return duckdb_data_chunk_set_size(chunk, 0);
    const Morsel& taken = scan.morsels[next];
    const bool same_batch = taken.pack == morsel.pack && taken.batch == morsel.batch;
    if (!same_batch) worker.index = nullptr;
    morsel = taken;
  }
  const Pack& pack = *scan.packs[morsel.pack].pack;
  size_t count = std::min(static_cast<size_t>(duckdb_vector_size()),
                          static_cast<size_t>(morsel.end - morsel.begin));
  try {
    if (!worker.index) worker.index = index_columns(scan, morsel);
    if (scan.packs[morsel.pack].slides) count = find_slides(scan, worker, count);
  } catch (Error& error) {
    throw std::move(error).in(pack.path());
  }
  for (size_t i = 0; i < scan.columns.size(); ++i) {
    const ScanColumn& column = *scan.columns[i];
    try {
      fill_column(column, pack, worker, count, duckdb_data_chunk_get_vector(chunk, i));
    } catch (const Error& error) {
      rethrow_in(error, column, pack.path());
    }
  }
  morsel.begin += static_cast<int64_t>(count);
  duckdb_data_chunk_set_size(chunk, count);
}

}  // namespace

void register_scan(duckdb_connection connection) {
  const Handle<duckdb_table_function> function(duckdb_create_table_function());
  const LogicalType text = logical_type(DUCKDB_TYPE_VARCHAR);
  const LogicalType flag = logical_type(DUCKDB_TYPE_BOOLEAN);
  duckdb_table_function_set_name(function.get(), "iac_scan");
  duckdb_table_function_add_parameter(function.get(), text.get());
  duckdb_table_function_add_named_parameter(function.get(), "layout", flag.get());
  duckdb_table_function_supports_projection_pushdown(function.get(), true);
  duckdb_table_function_set_bind(function.get(), [](duckdb_bind_info info) {
    guarded([&](const char* text) { duckdb_bind_set_error(info, text); }, [&] { bind(info); });
  });
  duckdb_table_function_set_init(function.get(), [](duckdb_init_info info) {
    guarded([&](const char* text) { duckdb_init_set_error(info, text); }, [&] { init(info); });
  });
  duckdb_table_function_set_local_init(function.get(), [](duckdb_init_info info) {
    guarded([&](const char* text) { duckdb_init_set_error(info, text); },
            [&] { init_worker(info); });
  });
  duckdb_table_function_set_function(
      function.get(), [](duckdb_function_info info, duckdb_data_chunk chunk) {
        guarded([&](const char* text) { duckdb_function_set_error(info, text); },
                [&] { next_chunk(info, chunk); });
      });
  if (duckdb_register_table_function(connection, function.get()) != DuckDBSuccess) {
    throw Error(Error::Kind::argument, "cannot register iac_scan");
  }
}

}  // namespace iac::duckdb
