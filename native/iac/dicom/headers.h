// The DICOM headers of a pack of payload type dicom_patient. Its slide table says where in the data
// segment the template of each series lies, its index table holds the delta of each instance; both
// are JSON, compressed with zstd, with a crc32. Where an instance has several frames, each is a
// row; they lie behind each other, and the first has the delta of all.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "iac/dicom/header.h"
#include "iac/pack.h"

namespace iac::dicom {

// Whether a pack says to be one of DICOM instances.
bool is_dicom(const Pack& pack);

struct RowHeader {
  std::shared_ptr<const Header> header;
  size_t frame = 0;  // of the instance, that the row is
};

// Usable by any number of threads at once.
class Headers {
 public:
  // Throws Error when the pack is no such pack or its tables lack what it needs.
  explicit Headers(const Pack& pack);

  // The headers of rows, in the order given. Those that cannot be had are added to `failures`, and
  // without a header. Throws Error when together they would be larger than
  // options.limits.batch_bytes, where that is not 0.
  std::vector<RowHeader> read(std::span<const int64_t> rows, const ReadOptions& options,
                              Failures& failures) const;
  // The same; throws the Error of the first row that fails.
  std::vector<RowHeader> read(std::span<const int64_t> rows, const ReadOptions& options) const;

  // The patient id of rows: that of their headers, nothing where it is missing or empty. Of a
  // series whose instances have the same it is read once.
  std::vector<std::optional<std::string>> patient_ids(std::span<const int64_t> rows,
                                                      const ReadOptions& options) const;

 private:
  struct Series {
    Segment place;  // of its template, in the data segment
    std::optional<uint32_t> crc32;
  };
  struct Kept {
    std::shared_ptr<const HeaderText> text;
    bool verified = false;
  };

  size_t require_column(const Table& table, const char* name) const;
  void read_header();
  void read_series();
  // Takes the rows' frame numbers from them; what is left are the rows of their deltas.
  std::vector<size_t> read_frames(std::vector<int64_t>& rows, Failures& failures) const;
  std::vector<std::shared_ptr<const Header>> read_instances(
      std::span<const int64_t> rows, const ReadOptions& options,
      std::vector<std::optional<Error>>& errors) const;
  size_t series_of(const std::optional<int64_t>& key) const;
  std::shared_ptr<const HeaderText> series_text(size_t series, const ReadOptions& options) const;

  const Pack& pack_;
  Segment prefix_;  // of the data segment, where the templates lie
  size_t series_column_ = 0, delta_column_ = 0;
  std::optional<size_t> crc32_column_, frame_column_;
  std::vector<Series> series_;
  std::unordered_map<int64_t, size_t> positions_;  // by series_idx

  mutable std::mutex mutex_;  // of the two below
  mutable std::unordered_map<size_t, Kept> kept_;
  mutable uint64_t kept_bytes_ = 0;
};

}  // namespace iac::dicom
