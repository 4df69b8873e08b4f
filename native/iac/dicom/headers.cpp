#include "iac/dicom/headers.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "iac/checksum.h"
#include "iac/codec/codec.h"
#include "iac/dicom/value.h"
#include "iac/error.h"
#include "iac/interrupt.h"
#include "iac/platform.h"
#include "iac/table_values.h"
#include "iac/workers.h"

namespace iac::dicom {
namespace {

constexpr const char* payload_type = "dicom_patient";
constexpr int64_t last_schema_version = 2;
constexpr uint32_t patient_id_tag = 0x00100020;
// Templates kept between calls; when there would be more, none are.
constexpr uint64_t kept_bytes = uint64_t{64} << 20;
// Of one template or delta, however much a record may decode to.
constexpr uint64_t max_text_bytes = uint64_t{256} << 20;
constexpr size_t rows_a_thread = 16;

Error bad(const std::string& reason) { return {Error::Kind::pack, reason}; }

// Says what it is that failed.
Error in(const std::string& what, const Error& error) {
  return {error.kind(), what + ": " + error.reason(), error.code()};
}

void check_crc32(Bytes stored, const std::optional<int64_t>& expected) {
  if (!expected || crc32(stored) == static_cast<uint32_t>(*expected)) return;
  throw Error(Error::Kind::checksum, "its stored bytes are damaged: their crc32 is " +
                                         std::to_string(crc32(stored)) + ", the table says " +
                                         std::to_string(*expected));
}

HeaderText decode(Bytes stored, const ReadOptions& options) {
  static const std::shared_ptr<const Codec> zstd = make_decoder("zstd", "{}");
  const uint64_t limit = std::min(max_text_bytes, options.limits.record_bytes);
  const uint64_t size = zstd->decoded_size(stored).bytes;
  if (size > limit) {
    throw Error(Error::Kind::codec, "it decodes to more than " + std::to_string(limit) + " bytes");
  }
  auto text = std::make_unique_for_overwrite<std::byte[]>(size);
  Target target(text.get(), size);
  const auto decoded = zstd->decode(stored, target);
  if (!decoded) throw Error(Error::Kind::codec, "zstd: payload decodes to more than it says");
  return {std::move(text), *decoded};
}

}  // namespace

bool is_dicom(const Pack& pack) { return pack.header().payload_type == payload_type; }

Headers::Headers(const Pack& pack) : pack_(pack) {
  if (!is_dicom(pack)) {
    const std::string& type = pack.header().payload_type;
    throw Error(Error::Kind::argument, "its payload_type is '" + type +
                                           "': only those of dicom_patient have DICOM headers");
  }
  read_header();
  series_column_ = require_column(*pack.index(), "series_idx");
  delta_column_ = require_column(*pack.index(), "dicom_delta");
  crc32_column_ = pack.index()->find("dicom_delta_crc32");
  frame_column_ = pack.index()->find("frame_index");
  read_series();
}

size_t Headers::require_column(const Table& table, const char* name) const {
  if (const auto column = table.find(name)) return *column;
  throw bad(std::string(&table == pack_.index().get() ? "index" : "slide") +
            " table: there is no column '" + name + "'");
}

void Headers::read_header() {
  const auto fields = nlohmann::json::parse(pack_.header().text);
  const auto version = fields.find("dicom_schema_version");
  const bool known = version != fields.end() && version->is_number_unsigned() &&
                     version->get<uint64_t>() >= 1 &&
                     version->get<uint64_t>() <= last_schema_version;
  if (!known) {
    throw bad("header field dicom_schema_version is " +
              (version != fields.end() ? version->dump() : "missing") +
              ", this reads versions 1 to " + std::to_string(last_schema_version));
  }
  if (const auto codec = fields.find("metadata_codec"); codec != fields.end() && *codec != "zstd") {
    throw bad("header field metadata_codec is " + codec->dump() + ", expected \"zstd\"");
  }
  const uint64_t size = pack_.header().data.length;
  prefix_ = {0, size};
  const auto number = [&](const char* name, uint64_t& out) {
    const auto field = fields.find(name);
    if (field == fields.end()) return;
    if (!field->is_number_unsigned() || field->get<uint64_t>() > size) {
      throw bad(std::string("header field ") + name + " is " + field->dump() +
                ", expected bytes of the data segment of " + std::to_string(size));
    }
    out = field->get<uint64_t>();
  };
  number("metadata_offset", prefix_.offset);
  prefix_.length = size - prefix_.offset;
  number("metadata_length", prefix_.length);
}

void Headers::read_series() {
  const Table& table = *pack_.slides();
  std::vector<int64_t> rows(static_cast<size_t>(table.num_rows()));
  std::iota(rows.begin(), rows.end(), 0);
  const auto values = [&](const char* name) {
    return TableValues(table, require_column(table, name), rows);
  };
  const TableValues keys = values("series_idx"), offsets = values("template_offset"),
                    lengths = values("template_length");
  std::optional<TableValues> checksums;
  if (const auto column = table.find("template_crc32")) checksums.emplace(table, *column, rows);
  for (const int64_t row : rows) {
    const auto key = keys.integer(row), offset = offsets.integer(row),
               length = lengths.integer(row);
    const std::string where = "slide table: series in row " + std::to_string(row);
    if (!key || !offset || !length || *offset < 0 || *length < 0) {
      throw bad(where + " has no place of its template");
    }
    if (!positions_.emplace(*key, series_.size()).second) {
      throw bad(where + " has the series_idx of another one");
    }
    const auto crc32 = checksums ? checksums->integer(row) : std::nullopt;
    series_.push_back({{static_cast<uint64_t>(*offset), static_cast<uint64_t>(*length)}, crc32});
  }
}

size_t Headers::series_of(const std::optional<int64_t>& key) const {
  const auto found = key ? positions_.find(*key) : positions_.end();
  if (found != positions_.end()) return found->second;
  throw bad("its series_idx is " + (key ? std::to_string(*key) : "NULL") +
            ", which no row of the slide table has");
}

std::shared_ptr<const HeaderText> Headers::series_text(size_t series,
                                                       const ReadOptions& options) const {
  {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(series);
    if (found != kept_.end() && (found->second.verified || !options.verify)) {
      return found->second.text;
    }
  }
  std::shared_ptr<const HeaderText> text;
  try {
    const auto& [place, crc32] = series_[series];
    if (place.length > prefix_.length || place.offset < prefix_.offset ||
        place.offset - prefix_.offset > prefix_.length - place.length) {
      throw bad("it lies outside the metadata of the pack: offset " + std::to_string(place.offset) +
                " + length " + std::to_string(place.length));
    }
    std::vector<std::byte> stored(place.length);
    pack_.read_data(place, stored);
    if (options.verify) check_crc32(stored, crc32);
    text = std::make_shared<const HeaderText>(decode(stored, options));
  } catch (const Error& error) {
    throw in("template of its series", error);
  }
  const std::lock_guard lock(mutex_);
  Kept& kept = kept_[series];
  if (kept.text) kept_bytes_ -= kept.text->bytes();
  kept = {text, options.verify};
  kept_bytes_ += text->bytes();
  if (kept_bytes_ > kept_bytes) {
    kept_.clear();
    kept_bytes_ = 0;
  }
  return text;
}

std::vector<size_t> Headers::read_frames(std::vector<int64_t>& rows, Failures& failures) const {
  std::vector<size_t> frames(rows.size(), 0);
  if (!frame_column_) return frames;
  const TableValues values(*pack_.index(), *frame_column_, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t frame = values.integer(rows[i]).value_or(-1);
    if (frame < 0 || frame > rows[i]) {
      failures.add(i, bad("its frame_index is that of no instance"));
      continue;
    }
    frames[i] = static_cast<size_t>(frame);
    rows[i] -= frame;
  }
  return frames;
}

std::vector<std::shared_ptr<const Header>> Headers::read_instances(
    std::span<const int64_t> rows, const ReadOptions& options,
    std::vector<std::optional<Error>>& errors) const {
  const Table& index = *pack_.index();
  const TableValues keys(index, series_column_, rows), deltas(index, delta_column_, rows);
  std::optional<TableValues> checksums;
  if (options.verify && crc32_column_) checksums.emplace(index, *crc32_column_, rows);
  const uint64_t limit =
      options.limits.batch_bytes > 0 ? options.limits.batch_bytes : platform::physical_memory();

  std::vector<std::shared_ptr<const Header>> headers(rows.size());
  std::atomic<uint64_t> bytes{0};
  const auto read_one = [&](size_t i) {
    auto series = series_text(series_of(keys.integer(rows[i])), options);
    try {
      const auto delta = deltas.bytes(rows[i]);
      if (!delta) throw bad("it is NULL");
      const Bytes stored = as_bytes(delta->data(), delta->size());
      if (checksums) check_crc32(stored, checksums->integer(rows[i]));
      HeaderText own = decode(stored, options);
      bytes += own.bytes();
      headers[i] = std::make_shared<const Header>(std::move(series), std::move(own));
    } catch (const Error& error) {
      throw in("dicom_delta", error);
    }
  };
  const size_t pieces = (rows.size() + rows_a_thread - 1) / rows_a_thread;
  parallel_for(pieces, worker_count(options.workers, pieces), [&](size_t piece) {
    check_interrupt();
    const size_t end = std::min(rows.size(), (piece + 1) * rows_a_thread);
    for (size_t i = piece * rows_a_thread; i < end && bytes <= limit; ++i) {
      try {
        read_one(i);
      } catch (const Error& error) {
        errors[i] = error;
      }
    }
  });
  if (bytes > limit) {
    throw Error(Error::Kind::argument, "DICOM headers of more than " + std::to_string(limit) +
                                           " bytes, ask for fewer rows at a time or raise "
                                           "max_batch_bytes");
  }
  return headers;
}

std::vector<RowHeader> Headers::read(std::span<const int64_t> rows, const ReadOptions& options,
                                     Failures& failures) const {
  pack_.require_rows(rows);
  std::vector<int64_t> first_rows(rows.begin(), rows.end());
  const auto frames = read_frames(first_rows, failures);
  std::vector<int64_t> instances = first_rows;
  std::sort(instances.begin(), instances.end());
  instances.erase(std::unique(instances.begin(), instances.end()), instances.end());
  std::vector<std::optional<Error>> errors(instances.size());
  const auto headers = read_instances(instances, options, errors);

  std::vector<RowHeader> found(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (failures.at(i)) continue;
    const auto at = std::lower_bound(instances.begin(), instances.end(), first_rows[i]);
    const auto instance = static_cast<size_t>(at - instances.begin());
    if (errors[instance]) {
      failures.add(i, *errors[instance]);
    } else {
      found[i] = {headers[instance], frames[i]};
    }
  }
  return found;
}

std::vector<RowHeader> Headers::read(std::span<const int64_t> rows,
                                     const ReadOptions& options) const {
  Failures failures(pack_.path(), rows);
  auto headers = read(rows, options, failures);
  failures.finish(OnError::raise, {}, {});
  return headers;
}

std::vector<std::optional<std::string>> Headers::patient_ids(std::span<const int64_t> rows,
                                                             const ReadOptions& options) const {
  std::vector<std::optional<std::string>> ids(rows.size());
  std::map<size_t, std::optional<std::string>> shared;  // by series
  std::vector<int64_t> others;                          // rows whose delta has to say it
  std::vector<size_t> others_at;
  const TableValues keys(*pack_.index(), series_column_, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    try {
      const size_t series = series_of(keys.integer(rows[i]));
      const auto [known, is_new] = shared.try_emplace(series);
      if (is_new) {
        const auto text = series_text(series, options);
        if (const auto element = find_element(text->elements(), patient_id_tag)) {
          known->second = value_text(*element).value_or("");
        }
      }
      if (known->second) {
        if (!known->second->empty()) ids[i] = *known->second;
        continue;
      }
    } catch (Error& error) {
      throw std::move(error).at(rows[i]);
    }
    others.push_back(rows[i]);
    others_at.push_back(i);
  }
  const auto headers = read(others, options);
  for (size_t i = 0; i < headers.size(); ++i) {
    const auto element = headers[i].header->find(patient_id_tag);
    if (element) ids[others_at[i]] = value_text(*element);
  }
  return ids;
}

}  // namespace iac::dicom
