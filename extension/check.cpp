// iac_check(path): a row a damaged record of a pack, and a row without a row number for damage that
// is of no single record.
#include <iac/dicom/headers.h>
#include <iac/error.h>
#include <iac/workers.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>

#include "columns.h"
#include "files.h"
#include "functions.h"
#include "packs.h"
#include "pieces.h"
#include "places.h"
#include "settings.h"
#include "slides.h"
#include "table_function.h"

namespace iac::duckdb {
namespace {

struct Finding {
  std::string pack;
  int64_t row;  // -1: of no record
  std::string reason;
};

// Goes through one pack after the other, a piece of records at a time, of which each is read and
// decoded by all threads.
class Checker {
 public:
  explicit Checker(const PackList& packs)
      : packs_(packs), settings_(read_settings(packs.context.get())) {}

  // Looks on until there is a finding, or no pack left.
  void advance() {
    while (findings_.empty()) {
      if (!pack_) {
        if (next_pack_ == packs_.paths.size()) return;
        open(packs_.paths[next_pack_++]);
      } else if (next_row_ < pack_->num_records()) {
        check_records();
      } else {
        pack_ = nullptr;
      }
    }
  }

  std::deque<Finding>& findings() { return findings_; }

 private:
  static constexpr int64_t rows_at_a_time = 1 << 14;

  void report(int64_t row, const Error& error) {
    findings_.push_back({packs_.paths[next_pack_ - 1], row, error.reason()});
  }

  // Runs `check`; what it throws is of no single record. One damage may fail several of them.
  template <class Check>
  bool passes(Check check) {
    try {
      check();
      return true;
    } catch (const Error& error) {
      const bool is_known = std::any_of(findings_.begin(), findings_.end(), [&](const auto& known) {
        return known.row < 0 && known.reason == error.reason();
      });
      if (!is_known) report(-1, error);
      return false;
    }
  }

  // One pack that is not there is no damage, but a mistake in the call; among others it is what is
  // looked for.
  void open(const std::string& path) {
    try {
      pack_ = open_pack_anew(packs_.context.get(), path);
    } catch (const Error& error) {
      if (is_forbidden(error) || (packs_.is_one && error.kind() != Error::Kind::pack)) throw;
      report(-1, error);
      return;
    }
    check_table(*pack_->slides());
    check_table(*pack_->index());
    check_scan();
    next_row_ = pack_->layout().kind() == Layout::Kind::none ? pack_->num_records() : 0;
    headers_ = nullptr;
    passes([&] {
      if (dicom::is_dicom(*pack_)) headers_ = &pack_->dicom_headers();
    });
    decode_ = passes([&] { require_codecs(); });
  }

  // What iac_scan needs beside columns that can be read.
  void check_scan() {
    passes([&] { index_columns(*pack_, true); });
    passes([&] { SlideLookup(*pack_, find_slide_key(*pack_)); });
    passes([&] {
      if (find_places(*pack_)) wsi::read_grid(*pack_);
    });
  }

  void check_table(const Table& table) {
    const size_t columns = table.num_columns(), count = columns * table.num_batches();
    std::vector<std::optional<Error>> errors(count);
    parallel_for(count, worker_count(settings_.threads, count), [&](size_t i) {
      try {
        table.column(i % columns, i / columns);
      } catch (const Error& error) {
        errors[i] = error;
      }
    });
    for (const auto& error : errors) {
      if (error) report(-1, *error);
    }
  }

  // Throws Error when this build cannot decode a codec of the header.
  void require_codecs() const {
    const Header& header = pack_->header();
    if (!pack_->layout().has_codec_ids()) {
      make_decoder(header.codec.name, header.codec.params);
      return;
    }
    for (const RecordCodec& entry : header.record_codecs) {
      make_decoder(entry.codec.name, entry.codec.params);
    }
  }

  void check_records() {
    const int64_t count = std::min(pack_->num_records() - next_row_, rows_at_a_time);
    std::vector<int64_t> rows(static_cast<size_t>(count));
    std::iota(rows.begin(), rows.end(), next_row_);
    try {
      const auto piece = next_piece(*pack_, rows);
      check_piece(piece);
      if (headers_ != nullptr) check_headers(piece);
      next_row_ += static_cast<int64_t>(piece.size());
    } catch (const Error& error) {  // of the index, so that no other record would be found either
      report(-1, error);
      next_row_ = pack_->num_records();
    }
  }

  void check_piece(std::span<const int64_t> rows) {
    ReadOptions options = settings_.options();
    options.decode = decode_;
    options.verify = true;
    options.on_error = OnError::null;
    try {
      for (const RowFailure& failure : pack_->read(rows, options).failures) {
        report(rows[failure.position], failure.error);
      }
    } catch (const Error& error) {
      if (!is_too_large(error)) throw;
      in_halves(rows, [this](auto half) { check_piece(half); });
    }
  }

  void check_headers(std::span<const int64_t> rows) {
    ReadOptions options = settings_.options();
    options.verify = true;
    Failures failures(pack_->path(), rows);
    try {
      headers_->read(rows, options, failures);
    } catch (const Error& error) {
      if (!is_too_large(error)) throw;
      return in_halves(rows, [this](auto half) { check_headers(half); });
    }
    for (const RowFailure& failure : failures.finish(OnError::null, {}, {}).failures) {
      report(rows[failure.position], failure.error);
    }
  }

  static bool is_too_large(const Error& error) {
    return error.kind() == Error::Kind::argument && error.row() < 0;
  }

  // Goes on with fewer of the rows that were too large together.
  template <class Check>
  void in_halves(std::span<const int64_t> rows, Check check) {
    if (rows.size() == 1) {
      report(rows.front(), Error(Error::Kind::argument,
                                 std::string("it was not decoded, for it is larger than ") +
                                     max_batch_bytes_setting));
      return;
    }
    check(rows.first(rows.size() / 2));
    check(rows.subspan(rows.size() / 2));
  }

  const PackList& packs_;
  const ReadSettings settings_;
  size_t next_pack_ = 0;
  std::shared_ptr<const Pack> pack_;         // that is being checked
  const dicom::Headers* headers_ = nullptr;  // of a pack that has them
  int64_t next_row_ = 0;
  bool decode_ = true;
  std::deque<Finding> findings_;
};

void bind(duckdb_bind_info info) {
  auto packs = std::make_unique<PackList>(bind_packs(info));
  duckdb_bind_add_result_column(info, "pack", logical_type(DUCKDB_TYPE_VARCHAR).get());
  duckdb_bind_add_result_column(info, "row", logical_type(DUCKDB_TYPE_BIGINT).get());
  duckdb_bind_add_result_column(info, "reason", logical_type(DUCKDB_TYPE_VARCHAR).get());
  duckdb_bind_set_bind_data(info, packs.release(), delete_state<PackList>);
}

void init(duckdb_init_info info) {
  const auto& packs = *static_cast<const PackList*>(duckdb_init_get_bind_data(info));
  auto checker = std::make_unique<Checker>(packs);
  duckdb_init_set_init_data(info, checker.release(), delete_state<Checker>);
}

void next(duckdb_function_info info, duckdb_data_chunk chunk) {
  auto& checker = *static_cast<Checker*>(duckdb_function_get_init_data(info));
  idx_t count = 0;
  checker.advance();
  while (count < duckdb_vector_size() && !checker.findings().empty()) {
    const Finding& finding = checker.findings().front();
    write_text(chunk, 0, count, finding.pack);
    if (finding.row < 0) {
      write_null(chunk, 1, count);
    } else {
      write_integer(chunk, 1, count, static_cast<uint64_t>(finding.row));
    }
    write_text(chunk, 2, count, finding.reason);
    checker.findings().pop_front();
    ++count;
  }
  duckdb_data_chunk_set_size(chunk, count);
}

}  // namespace

void register_check(duckdb_connection connection) {
  static constexpr TableFunction function{
      .name = "iac_check", .bind = bind, .init = init, .next = next};
  register_table_function(connection, function);
}

}  // namespace iac::duckdb
