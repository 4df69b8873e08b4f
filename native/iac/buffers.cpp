#include "iac/buffers.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "iac/per_process.h"
#include "iac/platform.h"

namespace iac {
namespace {

constexpr uint64_t large = uint64_t{256} << 10;       // from here on recycled
constexpr uint64_t kept_bytes = uint64_t{256} << 20;  // at most so much touched memory waits

// To what the memory of a large block is rounded up.
constexpr uint64_t page_of(uint64_t capacity) {
  return capacity < platform::huge_page ? large : platform::huge_page;
}

constexpr uint64_t rounded_up(uint64_t size, uint64_t page) {
  return (size + page - 1) / page * page;
}

struct Piece {
  std::byte* data = nullptr;
  uint64_t capacity = 0;
  uint64_t touched = 0;  // bytes that may be committed
};

// Pieces waiting for their next use.
struct Shelf {
  std::mutex mutex;
  std::vector<Piece> pieces;
  uint64_t touched = 0;
};

// Leaked on purpose: blocks may be given back while the process is being taken down.
PerProcess<Shelf>& shelf() {
  static auto* const instance = new PerProcess<Shelf>;
  return *instance;
}

Piece take(uint64_t capacity) {
  Shelf& kept = *shelf();
  {
    const std::lock_guard lock(kept.mutex);
    auto best = kept.pieces.end();
    for (auto it = kept.pieces.begin(); it != kept.pieces.end(); ++it) {
      const bool fits = it->capacity >= capacity && it->capacity <= capacity * 2;
      if (fits && (best == kept.pieces.end() || it->capacity < best->capacity)) best = it;
    }
    if (best != kept.pieces.end()) {
      const Piece piece = *best;
      kept.touched -= piece.touched;
      kept.pieces.erase(best);
      return piece;
    }
  }
  const Piece piece{platform::map_pages(capacity), capacity, 0};
  if (piece.data == nullptr) throw std::bad_alloc();
  return piece;
}

void give_back(Piece piece) {
  // Whoever failed half-way, or moved on to a larger block, has not said what he wrote.
  const uint64_t touched =
      std::min(rounded_up(piece.touched, page_of(piece.capacity)), piece.capacity);
  platform::decommit(piece.data + touched, piece.capacity - touched);
  platform::offer(piece.data, touched);
  Shelf& kept = *shelf();
  std::vector<Piece> dropped;
  {
    const std::lock_guard lock(kept.mutex);
    kept.pieces.push_back(piece);
    kept.touched += piece.touched;
    while (kept.touched > kept_bytes || kept.pieces.size() > 64) {  // the longest waiting first
      kept.touched -= kept.pieces.front().touched;
      dropped.push_back(kept.pieces.front());
      kept.pieces.erase(kept.pieces.begin());
    }
  }
  for (const Piece& old : dropped) platform::unmap_pages(old.data, old.capacity);
}

}  // namespace

class Block {
 public:
  explicit Block(uint64_t capacity) {
    if (capacity >= large) {
      piece_ = take(rounded_up(capacity, page_of(capacity)));
    } else {
      piece_ = {static_cast<std::byte*>(std::malloc(std::max<uint64_t>(capacity, 1))), capacity, 0};
      if (piece_.data == nullptr) throw std::bad_alloc();
    }
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (piece_.capacity >= large) {
      give_back(piece_);
    } else {
      std::free(piece_.data);
    }
  }

  std::byte* data() const { return piece_.data; }
  uint64_t capacity() const { return piece_.capacity; }
  void touch(uint64_t size) { piece_.touched = std::max(piece_.touched, size); }

 private:
  Piece piece_;
};

Buffer Buffer::allocate(uint64_t capacity) {
  if (capacity > uint64_t{1} << 46) throw std::bad_alloc();
  Buffer buffer;
  buffer.block_ = std::make_shared<Block>(capacity);
  return buffer;
}

std::byte* Buffer::data() const { return block_ ? block_->data() : nullptr; }
uint64_t Buffer::capacity() const { return block_ ? block_->capacity() : 0; }

void Buffer::set_size(size_t size) {
  size_ = size;
  if (block_) block_->touch(size);
}

}  // namespace iac
