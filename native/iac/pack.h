// An open pack: its header, its two tables, and its records, by row.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "iac/batch.h"
#include "iac/codec/codec.h"
#include "iac/decode.h"
#include "iac/layout.h"
#include "iac/per_process.h"
#include "iac/slabs.h"
#include "iac/table.h"

namespace iac {

namespace dicom {
class Headers;
}

struct ReadOptions {
  bool decode = true;    // false: the stored bytes
  unsigned workers = 0;  // 0: as many as are useful
  bool verify = true;    // compare with the crc32 of the index, where there is one
  OnError on_error = OnError::raise;
  DecodeLimits limits;
  bool text = false;  // decoded documents (see documents.h) shrink to their text region
  // A record that does not decode to an image fails; of whole slides (see wsi/tiles.h) what is to
  // be none decodes to nothing.
  bool images = false;
};

// Immutable and usable by any number of threads at once, in forked children as well. Every Error
// names the pack.
class Pack {
 public:
  // Opens, and checks header, tables and layout columns. `path` names the pack in errors.
  static std::shared_ptr<const Pack> open(const std::string& path);
  static std::shared_ptr<const Pack> open(std::shared_ptr<Source> source, std::string path);

  const std::string& path() const { return path_; }
  const Source& source() const { return *source_; }
  const Header& header() const { return header_; }
  const std::shared_ptr<const Table>& slides() const { return slides_; }
  const std::shared_ptr<const Table>& index() const { return index_; }
  const Layout& layout() const { return *layout_; }
  int64_t num_records() const { return index_->num_rows(); }

  // Bytes of the tables that stay in memory once they were read, and how many may of each.
  uint64_t cached_bytes() const;
  void limit_caches(uint64_t bytes, Table::Keep keep = Table::Keep::at_once) const;

  // The stored or decoded bytes of rows, in the order given, duplicates included.
  Batch read(std::span<const int64_t> rows, const ReadOptions& options) const;

  // What is done with the stored bytes of one of the rows asked for, `codec` being what the header
  // says decodes them. An Error that it throws is of that row.
  using UsePayload = std::function<void(size_t position, Bytes payload, const Codec& codec)>;
  // Calls `use` for each row, on several threads at once, and throws the first row's error. Of the
  // options `workers` and `verify` count.
  void for_each_payload(std::span<const int64_t> rows, const ReadOptions& options,
                        const UsePayload& use) const;

  // One row's stored bytes without the expense of a batch: where they are, and, into as much memory
  // as that says, what they are.
  Span locate_one(int64_t row) const;
  void read_one(int64_t row, const Span& span, bool verify, MutableBytes out) const;
  // Whether records are images, by the header alone: its codecs are, or it is one of DICOM
  // instances with several, of which those of some rows may not.
  bool decodes_to_images() const;
  // Whether stored bytes are what decoding would give.
  bool stored_as_is() const { return !layout_->has_codec_ids() && header_.codec.name == "none"; }

  // What tells this version of a row from another's: its crc32, or, where records have none, the
  // crc32 of header and tables together, which the first call reads.
  std::vector<uint32_t> stamps(std::span<const int64_t> rows) const;

  // Where rows are stored, from the start of the data segment. Throws on the first that is not
  // inside it.
  std::vector<Span> locate(std::span<const int64_t> rows) const;

  // A table's segment as it is stored.
  std::vector<std::byte> read_table(Segment segment) const;

  // Throws Error(index) when one of the rows is not there.
  void require_rows(std::span<const int64_t> rows) const;

  // The DICOM headers of a pack of payload type dicom_patient. Throws Error for any other.
  const dicom::Headers& dicom_headers() const;

  // Bytes of the data segment. Throws Error(index) when they are not all inside it.
  void read_data(Segment span, MutableBytes out) const;

 private:
  struct Located {
    std::vector<Span> spans;       // empty for the rows that failed
    std::vector<uint64_t> places;  // of each in one piece, and the sum behind them
    uint64_t stored_bytes() const { return places.back(); }
  };

  // Throws Error(pack) for a span that is not inside the data segment.
  void require_inside(const Span& span) const;
  Located locate(std::span<const int64_t> rows, Failures& failures) const;
  SlabRequest slabs_of(const Located& located, const ReadOptions& options) const;
  // Whether the records that a read with these options gives are all compared with their crc32.
  bool vouched(bool verify) const { return verify && layout_->has_crc32(); }
  Batch read_stored(const Located& located, const ReadOptions& options, Failures& failures) const;
  Batch read_decoded(std::span<const int64_t> rows, const Located& located,
                     const ReadOptions& options, Failures& failures) const;
  const Codec* decoder(const Span& span) const;
  // Throws Error(codec) for one that does not give images.
  void require_images(const Codec& codec, const Span& span) const;
  bool wants_text_region(const ReadOptions& options) const;
  uint32_t pack_stamp() const;

  std::shared_ptr<const Source> source_;
  std::string path_;
  Header header_;
  std::shared_ptr<const Table> slides_, index_;
  std::unique_ptr<const Layout> layout_;
  mutable std::atomic<uint64_t> pack_stamp_{0};  // 0: not computed yet
  struct DicomHeaders {
    std::mutex mutex;
    std::shared_ptr<const dicom::Headers> headers;  // once they are asked for
  };
  PerProcess<DicomHeaders> dicom_headers_;
  std::vector<std::shared_ptr<const Codec>> decoders_;  // as record_codecs, or the one codec
};

}  // namespace iac
