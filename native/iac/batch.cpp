#include "iac/batch.h"

#include <algorithm>
#include <cstring>

namespace iac {

// Forgets what are no images, and those of records that are left out.
static void settle(std::vector<ImageShape>& images, const std::vector<char>& failed, bool skip) {
  const auto is_image = [](const ImageShape& image) { return image.channels > 0; };
  if (std::none_of(images.begin(), images.end(), is_image)) images.clear();
  if (!skip || images.empty()) return;
  size_t kept = 0;
  for (size_t i = 0; i < failed.size(); ++i) {
    if (failed[i] == 0) images[kept++] = images[i];
  }
  images.resize(kept);
}

bool Failures::any_before(size_t position) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(list_.begin(), list_.end(),
                     [&](const RowFailure& failure) { return failure.position < position; });
}

Batch Failures::finish(OnError rule, Buffer data, std::span<const uint64_t> lengths,
                       std::vector<ImageShape> images) {
  std::sort(list_.begin(), list_.end(),
            [](const RowFailure& a, const RowFailure& b) { return a.position < b.position; });
  if (rule == OnError::raise && !list_.empty()) throw list_.front().error;

  Batch batch;
  const bool skip = rule == OnError::skip;
  batch.count = skip ? lengths.size() - list_.size() : lengths.size();
  batch.offsets = Buffer::allocate((batch.count + 1) * sizeof(uint64_t));
  batch.offsets.set_size((batch.count + 1) * sizeof(uint64_t));
  auto* offset = reinterpret_cast<uint64_t*>(batch.offsets.data());
  *offset = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (skip && at(i)) continue;  // it has no bytes
    offset[1] = offset[0] + lengths[i];
    ++offset;
    if (skip) batch.positions.push_back(static_cast<int64_t>(i));
  }
  if (rule == OnError::null && !list_.empty()) {
    batch.validity.assign((lengths.size() + 7) / 8, 0);
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (!at(i)) batch.validity[i / 8] |= static_cast<uint8_t>(1u << (i % 8));
    }
  }
  settle(images, failed_, skip);
  batch.images = std::move(images);
  batch.data = std::move(data);
  batch.data.set_size(*offset);
  batch.failures = std::move(list_);
  return batch;
}

void keep_parts(MutableBytes data, std::span<uint64_t> lengths, Bytes (*part)(Bytes),
                Failures& failures) {
  uint64_t from = 0, to = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const Bytes record = data.subspan(from, lengths[i]);
    from += lengths[i];
    lengths[i] = 0;
    if (failures.at(i)) continue;
    try {
      const Bytes kept = part(record);
      if (!kept.empty()) std::memmove(data.data() + to, kept.data(), kept.size());
      lengths[i] = kept.size();
      to += kept.size();
    } catch (const Error& error) {
      failures.add(i, error);
    }
  }
}

}  // namespace iac
