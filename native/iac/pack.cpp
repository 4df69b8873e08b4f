#include "iac/pack.h"

#include <algorithm>

#include "iac/checksum.h"
#include "iac/dicom/headers.h"
#include "iac/dicom/pixels.h"
#include "iac/documents.h"
#include "iac/error.h"
#include "iac/gather.h"
#include "iac/interrupt.h"
#include "iac/platform.h"
#include "iac/workers.h"
#include "iac/wsi/tiles.h"

namespace iac {

// Bytes of the tables read at a time for a pack's stamp.
static constexpr size_t stamp_read_bytes = size_t{1} << 20;

// Re-throws what `body` throws with the pack's name.
template <class Body>
static auto in_pack(const std::string& path, Body body) {
  try {
    return body();
  } catch (Error& error) {
    throw std::move(error).in(path);
  }
}

static Error out_of_range(int64_t row, int64_t records) {
  return {Error::Kind::index, "payload row out of range: " + std::to_string(row) +
                                  ", the pack has " + std::to_string(records) + " records"};
}

std::shared_ptr<const Pack> Pack::open(const std::string& path) {
  return open(LocalSource::open(path), path);
}

std::shared_ptr<const Pack> Pack::open(std::shared_ptr<Source> source, std::string path) {
  auto pack = std::make_shared<Pack>();
  pack->source_ = source;
  pack->path_ = std::move(path);
  in_pack(pack->path_, [&] {
    Header& header = pack->header_;
    source->confirmed([&] {
      header = Header::read(*source);
      source->keep_head(header.data.offset);
      pack->slides_ = Table::open(pack->source_, header.slide_table, "slide", header.num_slides);
      pack->index_ = Table::open(pack->source_, header.index_table, "index", header.num_records);
      pack->layout_ = std::make_unique<Layout>(pack->index_, header);
    });
    const bool unassigned = !header.record_codecs.empty() && !pack->layout_->has_codec_ids();
    if (unassigned && !header.names_codec) {
      header.codec.name = "one of record_codecs, without a codec_id column to say which";
    }
  });
  // A codec that this build does not have is an error when it is needed, stored bytes are not.
  const auto add_decoder = [&](const CodecSpec& spec) {
    std::shared_ptr<const Codec> codec;
    try {
      codec = make_decoder(spec.name, spec.params);
    } catch (const Error&) {
    }
    pack->decoders_.push_back(std::move(codec));
  };
  if (pack->layout_->has_codec_ids()) {
    for (const RecordCodec& entry : pack->header_.record_codecs) add_decoder(entry.codec);
  } else {
    add_decoder(pack->header_.codec);
  }
  return pack;
}

uint64_t Pack::cached_bytes() const {
  return slides_->cached_bytes() + index_->cached_bytes() + layout_->cached_bytes();
}

void Pack::limit_caches(uint64_t bytes, Table::Keep keep) const {
  slides_->limit_cache(bytes, keep);
  index_->limit_cache(bytes, keep);
  layout_->limit_cache(std::min(bytes, Layout::cache_limit));
}

bool Pack::decodes_to_images() const {
  if (dicom::is_dicom(*this) && layout_->has_codec_ids()) return true;
  return !decoders_.empty() &&
         std::all_of(decoders_.begin(), decoders_.end(),
                     [](const auto& codec) { return codec && codec->gives_images(); });
}

void Pack::require_images(const Codec& codec, const Span& span) const {
  if (codec.gives_images()) return;
  const std::string name(codec.name());
  if (dicom::is_dicom(*this) && layout_->has_codec_ids()) {
    throw Error(Error::Kind::codec,
                "codec_id " + std::to_string(header_.record_codecs[span.codec].id) + " (" + name +
                    ") is a frame as it stood in the file, which pydicom decodes: use "
                    "iac_query.adapters.dicom.DicomPatientReader");
  }
  throw Error(Error::Kind::codec,
              "its codec does not decode to images but to bytes (" + name + "), read it as such");
}

// Throws Error(codec) where there is none.
const Codec* Pack::decoder(const Span& span) const {
  if (span.codec < decoders_.size() && decoders_[span.codec]) return decoders_[span.codec].get();
  if (span.codec >= decoders_.size()) {
    throw Error(Error::Kind::codec, "its codec_id is not in the header's record_codecs");
  }
  const CodecSpec& spec =
      layout_->has_codec_ids() ? header_.record_codecs[span.codec].codec : header_.codec;
  make_decoder(spec.name, spec.params);
  return nullptr;
}

void Pack::require_inside(const Span& span) const {
  const uint64_t limit = header_.data.length;
  if (span.length <= limit && span.offset <= limit - span.length) return;
  throw Error(Error::Kind::pack, "payload span outside the data segment: offset " +
                                     std::to_string(span.offset) + " + length " +
                                     std::to_string(span.length) + " > " + std::to_string(limit));
}

Pack::Located Pack::locate(std::span<const int64_t> rows, Failures& failures) const {
  Located located;
  std::vector<int64_t> present(rows.begin(), rows.end());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= 0 && rows[i] < num_records()) continue;
    failures.add(i, out_of_range(rows[i], num_records()));
    present[i] = 0;
  }
  if (num_records() > 0) {
    located.spans = layout_->spans(present);
  } else {
    located.spans.resize(rows.size());
  }
  located.places.resize(rows.size() + 1, 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    Span& span = located.spans[i];
    if (!failures.at(i)) {
      try {
        require_inside(span);
      } catch (const Error& error) {
        failures.add(i, error);
      }
    }
    if (failures.at(i)) span = {};
    if (__builtin_add_overflow(located.places[i], span.length, &located.places[i + 1])) {
      throw Error(Error::Kind::argument, "the rows asked for have more than 2^64 bytes together");
    }
  }
  return located;
}

std::vector<Span> Pack::locate(std::span<const int64_t> rows) const {
  return in_pack(path_, [&] {
    Failures failures(path_, rows);
    Located located = locate(rows, failures);
    failures.finish(OnError::raise, {}, {});
    return std::move(located.spans);
  });
}

Span Pack::locate_one(int64_t row) const {
  return in_pack(path_, [&] {
    if (row < 0 || row >= num_records()) throw out_of_range(row, num_records()).at(row);
    const Span span = layout_->span(row);
    try {
      require_inside(span);
    } catch (Error& error) {
      throw std::move(error).at(row);
    }
    return span;
  });
}

void Pack::read_one(int64_t row, const Span& span, bool verify, MutableBytes out) const {
  in_pack(path_, [&] {
    try {
      source_->read_at(header_.data.offset + span.offset, out);
      if (verify && span.has_crc32) check(span, out);
    } catch (Error& error) {
      source_->confirm();
      throw std::move(error).at(row);
    }
    if (!vouched(verify)) source_->confirm();
  });
}

uint32_t Pack::pack_stamp() const {
  constexpr uint64_t known = uint64_t{1} << 32;  // beside a crc32, so that none looks unknown
  if (const uint64_t stamp = pack_stamp_.load(std::memory_order_relaxed); stamp != 0) {
    return static_cast<uint32_t>(stamp);
  }
  uint32_t stamp = crc32(as_bytes(header_.text.data(), header_.text.size()));
  std::vector<std::byte> chunk(stamp_read_bytes);
  const uint64_t end = header_.index_table.offset + header_.index_table.length;
  source_->confirmed([&] {
    for (uint64_t at = header_.slide_table.offset; at < end; at += chunk.size()) {
      chunk.resize(std::min<uint64_t>(chunk.size(), end - at));
      source_->read_at(at, chunk);
      stamp = crc32(chunk, stamp);
    }
  });
  pack_stamp_.store(known | stamp, std::memory_order_relaxed);
  return stamp;
}

void Pack::require_rows(std::span<const int64_t> rows) const {
  for (const int64_t row : rows) {
    if (row >= 0 && row < num_records()) continue;
    throw out_of_range(row, num_records()).at(row).in(path_);
  }
}

std::vector<uint32_t> Pack::stamps(std::span<const int64_t> rows) const {
  require_rows(rows);
  std::vector<uint32_t> stamps(rows.size());
  in_pack(path_, [&] {
    if (!layout_->has_crc32()) {
      std::fill(stamps.begin(), stamps.end(), pack_stamp());
      return;
    }
    const auto spans = source_->confirmed([&] { return layout_->spans(rows); });
    for (size_t i = 0; i < rows.size(); ++i) stamps[i] = spans[i].crc32;
  });
  return stamps;
}

std::vector<std::byte> Pack::read_table(Segment segment) const {
  return in_pack(path_, [&] {
    std::vector<std::byte> out(segment.length);
    source_->confirmed([&] { source_->read_at(segment.offset, out); });
    return out;
  });
}

const dicom::Headers& Pack::dicom_headers() const {
  DicomHeaders& kept = *dicom_headers_;
  const std::lock_guard lock(kept.mutex);
  if (!kept.headers) {
    kept.headers = in_pack(path_, [&] { return std::make_shared<const dicom::Headers>(*this); });
  }
  return *kept.headers;
}

void Pack::read_data(Segment span, MutableBytes out) const {
  in_pack(path_, [&] {
    const uint64_t limit = header_.data.length;
    if (span.length > limit || span.offset > limit - span.length) {
      throw Error(Error::Kind::argument,
                  "data span outside data segment: offset " + std::to_string(span.offset) +
                      " + length " + std::to_string(span.length) + " > " + std::to_string(limit));
    }
    source_->confirmed([&] { source_->read_at(header_.data.offset + span.offset, out); });
  });
}

bool Pack::wants_text_region(const ReadOptions& options) const {
  return options.text && options.decode && layout_->kind() == Layout::Kind::variable &&
         document_kind(header_.payload_type).has_value();
}

Batch Pack::read_stored(const Located& located, const ReadOptions& options,
                        Failures& failures) const {
  const uint64_t size = located.stored_bytes();
  const uint64_t limit =
      options.limits.batch_bytes > 0 ? options.limits.batch_bytes : platform::physical_memory();
  if (size > limit) {
    throw Error(Error::Kind::argument, "batch of " + std::to_string(size) +
                                           " bytes is larger than the limit of " +
                                           std::to_string(limit) +
                                           ", ask for fewer rows at a time or raise "
                                           "max_batch_bytes");
  }
  Buffer out = Buffer::allocate(size);
  out.set_size(size);
  gather({*source_, header_.data, located.spans, located.places, out.data(), options.workers,
          options.verify},
         0, failures);
  if (failures.any() || !vouched(options.verify)) source_->confirm();
  std::vector<uint64_t> lengths(located.spans.size());
  bool has_holes = false;
  uint64_t to = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = failures.at(i) ? 0 : located.spans[i].length;
    has_holes |= lengths[i] != located.spans[i].length;
    if (has_holes) std::memmove(out.data() + to, out.data() + located.places[i], lengths[i]);
    to += lengths[i];
  }
  if (wants_text_region(options)) keep_parts(out.bytes(), lengths, text_region, failures);
  return failures.finish(options.on_error, std::move(out), lengths);
}

SlabRequest Pack::slabs_of(const Located& located, const ReadOptions& options) const {
  return {*source_,        header_.data,   located.spans,   located.places,
          options.workers, options.verify, options.on_error};
}

Batch Pack::read_decoded(std::span<const int64_t> rows, const Located& located,
                         const ReadOptions& options, Failures& failures) const {
  std::optional<dicom::PixelDecoders> pixels;
  std::optional<wsi::TileDecoders> tiles;
  if (dicom::is_dicom(*this) || wsi::is_slide(*this)) {
    std::vector<int64_t> present;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!failures.at(i)) present.push_back(rows[i]);
    }
    if (wsi::is_slide(*this)) {
      tiles.emplace(*this, present);
    } else {
      pixels.emplace(*this, present);
    }
  }
  BatchDecoder decoder(options.limits, options.workers, located.stored_bytes());
  const auto decode = [&](size_t first, std::span<const Bytes> payloads) {
    std::vector<const Codec*> codecs(payloads.size());
    for (size_t i = first; i < first + payloads.size(); ++i) {
      if (failures.at(i)) continue;
      const Codec*& codec = codecs[i - first];
      try {
        codec = this->decoder(located.spans[i]);
        if (pixels) codec = &pixels->decoder(rows[i], located.spans[i], *codec);
        if (tiles) codec = &tiles->decoder(rows[i], *codec, options.images);
        if (options.images) require_images(*codec, located.spans[i]);
      } catch (const Error& error) {
        failures.add(i, error);
      }
    }
    decoder.add(payloads, codecs, first, failures);
  };
  for_each_slab(slabs_of(located, options), failures, decode);
  if (wants_text_region(options)) decoder.keep(text_region, failures);
  if (failures.any() || !vouched(options.verify)) source_->confirm();
  return decoder.finish(options.on_error, failures);
}

Batch Pack::read(std::span<const int64_t> rows, const ReadOptions& options) const {
  return in_pack(path_, [&] {
    Failures failures(path_, rows);
    Batch batch;
    try {
      const Located located = locate(rows, failures);
      const bool stored = !options.decode || (stored_as_is() && !options.images);
      batch = stored ? read_stored(located, options, failures)
                     : read_decoded(rows, located, options, failures);
    } catch (const Error&) {
      source_->confirm();
      throw;
    }
    if (!vouched(options.verify)) batch.unchecked = batch.count;
    return batch;
  });
}

void Pack::for_each_payload(std::span<const int64_t> rows, const ReadOptions& options,
                            const UsePayload& use) const {
  in_pack(path_, [&] {
    Failures failures(path_, rows);
    try {
      const Located located = locate(rows, failures);
      const auto use_row = [&](size_t position, Bytes payload) {
        check_interrupt();
        if (failures.at(position)) return;
        try {
          use(position, payload, *decoder(located.spans[position]));
        } catch (const Error& error) {
          failures.add(position, error);
        }
      };
      const auto use_slab = [&](size_t first, std::span<const Bytes> payloads) {
        parallel_for(payloads.size(), worker_count(options.workers, payloads.size()),
                     [&](size_t i) { use_row(first + i, payloads[i]); });
      };
      for_each_slab(slabs_of(located, options), failures, use_slab);
      failures.finish(OnError::raise, {}, {});
      if (!vouched(options.verify)) source_->confirm();
    } catch (const Error&) {
      source_->confirm();
      throw;
    }
  });
}

}  // namespace iac
