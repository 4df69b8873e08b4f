#include "iac/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "iac/workers.h"

namespace iac {

void Source::read_at(uint64_t offset, std::span<const MutableBytes> pieces) const {
  std::vector<MutableBytes> rest;  // only filled after a short read
  while (!pieces.empty()) {
    if (pieces.front().empty()) {
      pieces = pieces.subspan(1);
      continue;
    }
    const int64_t got = read_some(offset, pieces);
    if (got == -EINTR) continue;
    if (got < 0) throw system_error(static_cast<int>(-got), "cannot read");
    if (got == 0) {
      throw Error(Error::Kind::pack, "file ends at byte " + std::to_string(offset) +
                                         ", was it truncated after it was opened?");
    }
    offset += static_cast<uint64_t>(got);
    auto left = static_cast<size_t>(got);
    while (!pieces.empty() && left >= pieces.front().size()) {
      left -= pieces.front().size();
      pieces = pieces.subspan(1);
    }
    if (left > 0 && !pieces.empty()) {
      if (rest.empty()) rest.assign(pieces.begin(), pieces.end());
      const auto begun = rest.end() - static_cast<ptrdiff_t>(pieces.size());
      *begun = begun->subspan(left);
      pieces = {begun, rest.end()};
    }
  }
}

void Source::for_each_read(size_t reads, unsigned workers,
                           const std::function<void(size_t)>& body) const {
  if (style_.expensive()) {
    concurrent_for(reads, style_.at_once, body);
  } else {
    parallel_for(reads, worker_count(workers, reads), body);
  }
}

static std::string identity_of(const struct stat& file) {
#ifdef __APPLE__
  const auto modified = file.st_mtimespec, changed = file.st_ctimespec;
#else
  const auto modified = file.st_mtim, changed = file.st_ctim;
#endif
  std::string text;
  for (const int64_t part :
       {static_cast<int64_t>(file.st_dev), static_cast<int64_t>(file.st_ino),
        static_cast<int64_t>(file.st_size), static_cast<int64_t>(modified.tv_sec),
        static_cast<int64_t>(modified.tv_nsec), static_cast<int64_t>(changed.tv_sec),
        static_cast<int64_t>(changed.tv_nsec)}) {
    text += std::to_string(part) + ':';
  }
  return text;
}

std::string local_identity(const std::string& path) {
  struct stat file;
  return stat(path.c_str(), &file) == 0 ? identity_of(file) : std::string();
}

std::shared_ptr<LocalSource> LocalSource::open(const std::string& path) {
  // The system would take a NUL for the end of the path.
  if (path.find('\0') != std::string::npos) throw system_error(EINVAL, "cannot open").in(path);
  // Without O_NONBLOCK a FIFO would wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw system_error(errno, "cannot open").in(path);
  struct stat file;
  int failed = fstat(fd, &file) == 0 ? 0 : errno;
  if (failed == 0 && S_ISDIR(file.st_mode)) failed = EISDIR;
  if (failed != 0) {
    ::close(fd);
    throw system_error(failed, "cannot open").in(path);
  }
  if (!S_ISREG(file.st_mode)) {
    ::close(fd);
    throw Error(Error::Kind::system, "cannot open: it is a pipe, socket or device", EINVAL)
        .in(path);
  }
  return std::shared_ptr<LocalSource>(
      new LocalSource(fd, static_cast<uint64_t>(file.st_size), identity_of(file)));
}

LocalSource::~LocalSource() { ::close(descriptor_); }

int64_t LocalSource::read_some(uint64_t offset, std::span<const MutableBytes> pieces) const {
  std::array<iovec, 256> vectors;
  const size_t count = std::min(pieces.size(), vectors.size());
  for (size_t i = 0; i < count; ++i) vectors[i] = {pieces[i].data(), pieces[i].size()};
  const ssize_t got =
      preadv(descriptor_, vectors.data(), static_cast<int>(count), static_cast<off_t>(offset));
  return got >= 0 ? got : -errno;
}

}  // namespace iac
