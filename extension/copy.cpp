// COPY (...) TO 'x.iac' (FORMAT iac, ...)
#include <iac/error.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "copy_payloads.h"
#include "copy_records.h"
#include "copy_slides.h"
#include "files.h"
#include "functions.h"
#include "paths.h"
#include "settings.h"
#include "values.h"

namespace iac::duckdb {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// DuckDB replaces a file by having another written in its place, which it then renames.
std::string user_path(const std::string& path) {
  constexpr std::string_view prefix = "tmp_";
  const fs::path file(path);
  const std::string name = file.filename().string();
  if (!name.starts_with(prefix)) return path;
  const fs::path replaced = file.parent_path() / name.substr(prefix.size());
  std::error_code ignored;
  return fs::exists(replaced, ignored) ? replaced.string() : path;
}

// Runs a step of a COPY, whose errors say what the user calls the file.
template <class Body>
void naming_target(const std::string& path, const std::string& target, Body body) {
  try {
    body();
  } catch (const Error& error) {
    if (!error.pack().empty() && error.pack() != path)
      throw;  // of a pack that records are read from
    Error renamed(error.kind(), error.reason(), error.code());
    throw std::move(renamed).in(target).at(error.row());
  }
}

// One run of a COPY. What it made goes when this goes, but for a pack that was finished.
struct Copy {
  Copy(const CopyPlan& plan, const std::string& path, unsigned threads)
      : path(path),
        target(user_path(path)),
        file(std::make_unique<OutputFile>(path, true)),
        spool(path),
        payloads(plan, threads, spool),
        records(plan, threads, spool),
        index(plan.index),
        slides(plan) {}

  std::string path;
  std::string target;  // in errors
  std::unique_ptr<OutputFile> file;
  RecordSpool spool;
  PayloadEncoder payloads;
  RecordCopier records;
  TableBuilder index;
  SlideBuilder slides;
  int64_t rows = 0;
};

void bind(duckdb_copy_function_bind_info info) {
  std::vector<LogicalType> types;
  for (idx_t i = 0; i < duckdb_copy_function_bind_get_column_count(info); ++i) {
    types.emplace_back(duckdb_copy_function_bind_get_column_type(info, i));
  }
  const Value options(duckdb_copy_function_bind_get_options(info));
  auto plan = std::make_unique<CopyPlan>(std::move(types), CopyOptions::read(options.get()));
  plan->context = ClientContext(duckdb_copy_function_bind_get_client_context(info));
  duckdb_copy_function_bind_set_bind_data(info, plan.release(), delete_state<CopyPlan>);
}

// The file is written here and not by DuckDB, whose rules for access to files hold all the same:
// asked to open the file it says whether they allow it, also where there is none yet.
void check_target(duckdb_client_context context, const std::string& path) {
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw Error(Error::Kind::system, "is not a file that can be replaced").in(path);
  }
  // Where it would lead to is not what DuckDB was asked about.
  if (!fs::exists(status) && fs::is_symlink(fs::symlink_status(path, ignored))) {
    throw Error(Error::Kind::system, "is a link to a file that does not exist").in(path);
  }
  check_allowed(context, path);
  if (!fs::is_directory(fs::path(path).parent_path(), ignored)) {
    throw Error(Error::Kind::system, "cannot write: its folder does not exist").in(path);
  }
}

void init(duckdb_copy_function_global_init_info info) {
  const auto& plan =
      *static_cast<const CopyPlan*>(duckdb_copy_function_global_init_get_bind_data(info));
  const ClientContext context(duckdb_copy_function_global_init_get_client_context(info));
  const std::string given = duckdb_copy_function_global_init_get_file_path(info);
  if (is_url(given)) {
    throw Error(Error::Kind::argument, "packs can be written to local files only").in(given);
  }
  const std::string path = pack_path(context.get(), given);
  naming_target(path, user_path(path), [&] {
    check_target(context.get(), path);
    auto copy = std::make_unique<Copy>(plan, path, read_settings(context.get()).threads);
    duckdb_copy_function_global_init_set_global_state(info, copy.release(), delete_state<Copy>);
  });
}

void check_rows(const CopyPlan& plan, duckdb_data_chunk chunk, size_t count, int64_t first_row) {
  if (duckdb_data_chunk_get_column_count(chunk) != plan.width) {
    throw Error(Error::Kind::argument, "COPY to iac: the rows have other columns than planned");
  }
  if (!plan.one_struct) return;
  const uint64_t* mask = duckdb_vector_get_validity(duckdb_data_chunk_get_vector(chunk, 0));
  for (size_t i = 0; i < count; ++i) {
    if (is_valid(mask, i)) continue;
    throw Error(Error::Kind::argument, "the struct is NULL, it must have the columns' values")
        .at(first_row + static_cast<int64_t>(i));
  }
}

void add_rows(const CopyPlan& plan, Copy& copy, duckdb_data_chunk chunk) {
  const size_t count = duckdb_data_chunk_get_size(chunk);
  check_rows(plan, chunk, count, copy.rows);
  copy.slides.add(chunk, count, copy.rows);
  copy.index.append(plan, chunk, Rows(0, count));
  if (plan.reference) {
    copy.records.add(chunk, count);
  } else {
    copy.payloads.add(chunk, count);
  }
  copy.rows += static_cast<int64_t>(count);
}

void sink(duckdb_copy_function_sink_info info, duckdb_data_chunk chunk) {
  const auto& plan = *static_cast<const CopyPlan*>(duckdb_copy_function_sink_get_bind_data(info));
  auto& copy = *static_cast<Copy*>(duckdb_copy_function_sink_get_global_state(info));
  naming_target(copy.path, copy.target, [&] { add_rows(plan, copy, chunk); });
}

std::string header_of(const CopyPlan& plan, const Copy& copy) {
  const CodecSpec codec =
      plan.reference ? copy.records.codec()
                     : CodecSpec{std::string(plan.codec->name()), plan.codec->parameters()};
  json header{{"payload_type", plan.payload_type}, {"codec", codec.name}};
  const json params = json::parse(codec.params.empty() ? "{}" : codec.params);
  if (!params.empty()) header["codec_params"] = params;
  return header.dump();
}

nanoarrow::UniqueBuffer finish_index(const CopyPlan& plan, Copy& copy) {
  const RecordSpool& spool = copy.spool;
  const PlainColumn key{"slide_idx", NANOARROW_TYPE_UINT32, sizeof(uint32_t),
                        copy.slides.slide_of_record().data()};
  const PlainColumn layout[] = {
      {"offset", NANOARROW_TYPE_UINT64, sizeof(uint64_t), spool.offsets().data()},
      {"length", NANOARROW_TYPE_UINT32, sizeof(uint32_t), spool.lengths().data()},
      {"crc32", NANOARROW_TYPE_UINT32, sizeof(uint32_t), spool.crc32s().data()}};
  return copy.index.finish({&key, plan.numbers_slides ? size_t{1} : size_t{0}}, layout);
}

Bytes view(const nanoarrow::UniqueBuffer& buffer) {
  return as_bytes(buffer->data, static_cast<size_t>(buffer->size_bytes));
}

void write_pack(const CopyPlan& plan, Copy& copy) {
  copy.payloads.flush();
  const nanoarrow::UniqueBuffer index = finish_index(plan, copy), slides = copy.slides.finish();
  const Segments segments{.slide_table_length = view(slides).size(),
                          .index_table_length = view(index).size(),
                          .num_slides = static_cast<uint64_t>(copy.slides.num_slides()),
                          .num_records = static_cast<uint64_t>(copy.rows)};
  Writer writer(std::move(copy.file), header_of(plan, copy), segments);
  copy.spool.copy_to(writer);
  writer.finish(view(slides), view(index));
}

void finalize(duckdb_copy_function_finalize_info info) {
  const auto& plan =
      *static_cast<const CopyPlan*>(duckdb_copy_function_finalize_get_bind_data(info));
  auto& copy = *static_cast<Copy*>(duckdb_copy_function_finalize_get_global_state(info));
  naming_target(copy.path, copy.target, [&] { write_pack(plan, copy); });
}

}  // namespace

void register_copy(duckdb_connection connection) {
  const Handle<duckdb_copy_function> function(duckdb_create_copy_function());
  duckdb_copy_function_set_name(function.get(), "iac");
  duckdb_copy_function_set_bind(function.get(), [](duckdb_copy_function_bind_info info) {
    guarded([&](const char* text) { duckdb_copy_function_bind_set_error(info, text); },
            [&] { bind(info); });
  });
  duckdb_copy_function_set_global_init(
      function.get(), [](duckdb_copy_function_global_init_info info) {
        guarded([&](const char* text) { duckdb_copy_function_global_init_set_error(info, text); },
                [&] { init(info); });
      });
  duckdb_copy_function_set_sink(
      function.get(), [](duckdb_copy_function_sink_info info, duckdb_data_chunk chunk) {
        guarded([&](const char* text) { duckdb_copy_function_sink_set_error(info, text); },
                [&] { sink(info, chunk); });
      });
  duckdb_copy_function_set_finalize(function.get(), [](duckdb_copy_function_finalize_info info) {
    guarded([&](const char* text) { duckdb_copy_function_finalize_set_error(info, text); },
            [&] { finalize(info); });
  });
  if (duckdb_register_copy_function(connection, function.get()) != DuckDBSuccess) {
    throw Error(Error::Kind::argument, "cannot register COPY ... (FORMAT iac)");
  }
}

}  // namespace iac::duckdb
