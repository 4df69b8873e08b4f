#include "copy_records.h"

#include <iac/checksum.h>
#include <iac/error.h>

#include <nlohmann/json.hpp>
#include <set>

namespace iac::duckdb {
namespace {

using nlohmann::json;

// Stored bytes read at a time.
constexpr uint64_t round_bytes = uint64_t{32} << 20;

using References = std::vector<std::optional<Reference>>;

// The first references from `first` on that lead to up to `most` packs.
References next_part(const References& all, size_t first, size_t most) {
  std::set<std::string_view> packs;
  size_t end = first;
  for (; end < all.size(); ++end) {
    packs.insert(all[end]->pack);
    if (packs.size() > most) break;
  }
  return {all.begin() + static_cast<ptrdiff_t>(first), all.begin() + static_cast<ptrdiff_t>(end)};
}

// The codec that a record of a pack is stored with.
const CodecSpec& codec_of(const Pack& pack, const Span& span, int64_t row) {
  const Header& header = pack.header();
  if (!pack.layout().has_codec_ids()) return header.codec;
  if (span.codec < header.record_codecs.size()) return header.record_codecs[span.codec].codec;
  throw Error(Error::Kind::codec, "its codec_id is not in the header's record_codecs")
      .at(row)
      .in(pack.path());
}

// What decoding needs of the parameters; all of them for a codec that is not built in.
std::string decoding_parameters(const CodecSpec& spec) {
  try {
    return make_decoder(spec.name, spec.params)->parameters();
  } catch (const Error&) {
    return spec.params;
  }
}

std::string common_parameters(const std::string& a, const std::string& b) {
  const json left = json::parse(a), right = json::parse(b);
  json common = json::object();
  for (const auto& [name, value] : left.items()) {
    if (right.contains(name) && right[name] == value) common[name] = value;
  }
  return common.dump();
}

}  // namespace

RecordCopier::RecordCopier(const CopyPlan& plan, unsigned threads, RecordSpool& spool)
    : plan_(plan), threads_(threads), spool_(spool) {}

CodecSpec RecordCopier::codec() const {
  if (codec_) return *codec_;
  return {plan_.codec ? std::string(plan_.codec->name()) : "none", "{}"};
}

void RecordCopier::agree_on_codec(const CodecSpec& spec, const Pack& pack, int64_t row) {
  if (codec_ && codec_->name == spec.name && codec_->params == spec.params) return;
  const auto refused = [&](const std::string& reason) {
    return Error(Error::Kind::argument,
                 "its codec is " + spec.name + ", " + reason +
                     ": copying does not encode anew, so give a payload, iac_payload(record) or "
                     "iac_image(record), and a CODEC")
        .at(row)
        .in(pack.path());
  };
  if (plan_.codec && plan_.codec->name() != spec.name) {
    throw refused("CODEC is " + std::string(plan_.codec->name()));
  }
  if (!codec_) {
    codec_ = spec;
    return;
  }
  if (codec_->name != spec.name) throw refused("that of records before it " + codec_->name);
  if (decoding_parameters(*codec_) != decoding_parameters(spec)) {
    throw refused("with other parameters than that of records before it");
  }
  codec_->params = common_parameters(codec_->params, spec.params);
}

void RecordCopier::add(duckdb_data_chunk chunk, size_t count) {
  const auto references = plan_.reference->read(plan_.column(chunk, plan_.payload), count);
  for (size_t i = 0; i < count; ++i) {
    if (references[i]) continue;
    throw Error(Error::Kind::argument, "the record is NULL, every row must have one")
        .at(static_cast<int64_t>(spool_.count() + i));
  }
  for (size_t first = 0; first < count;) {
    const auto part = next_part(references, first, max_packs);
    add_part(part);
    first += part.size();
  }
}

void RecordCopier::add_part(const std::vector<std::optional<Reference>>& references) {
  const size_t count = references.size();
  std::vector<Source> sources;
  std::vector<uint64_t> lengths(count);
  for (Group& group : group_by_pack(references)) {
    auto pack = packs_.open(plan_.context.get(), group);
    check_stamps(*pack, group);
    const std::vector<Span> spans = pack->locate(group.rows);
    for (size_t i = 0; i < spans.size(); ++i) {
      lengths[group.slots[i]] = spans[i].length;
      agree_on_codec(codec_of(*pack, spans[i], group.rows[i]), *pack, group.rows[i]);
    }
    sources.push_back({std::move(pack), std::move(group)});
  }
  for (size_t first = 0; first < count;) {
    size_t end = first;
    uint64_t bytes = 0;
    while (end < count && (end == first || bytes + lengths[end] <= round_bytes)) {
      bytes += lengths[end++];
    }
    copy(sources, first, end - first);
    first = end;
  }
}

// Copies the records of the slots from `first` on.
void RecordCopier::copy(std::vector<Source>& sources, size_t first, size_t count) {
  std::vector<Batch> batches;
  std::vector<Bytes> records(count);
  for (Source& source : sources) {
    const size_t begin = source.next;
    const std::vector<idx_t>& slots = source.group.slots;
    while (source.next < slots.size() && slots[source.next] < first + count) ++source.next;
    if (source.next == begin) continue;
    ReadOptions options;
    options.decode = false;
    options.workers = threads_;
    const auto rows = std::span(source.group.rows).subspan(begin, source.next - begin);
    const Batch& batch = batches.emplace_back(source.pack->read(rows, options));
    const auto* offsets = reinterpret_cast<const uint64_t*>(batch.offsets.data());
    for (size_t i = 0; i < batch.count; ++i) {
      records[slots[begin + i] - first] =
          as_bytes(batch.data.data() + offsets[i], offsets[i + 1] - offsets[i]);
    }
  }
  for (const Bytes record : records) {
    const uint32_t length = stored_length(record.size()), checksum = crc32(record);
    spool_.append(record, {&length, 1}, {&checksum, 1});
  }
}

}  // namespace iac::duckdb
