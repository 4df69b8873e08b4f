#include "iac/platform.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#endif

static_assert(std::endian::native == std::endian::little,
              "packs are little-endian and read without swapping");

namespace iac::platform {

unsigned usable_cpus() {
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

uint64_t physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size)
                               : uint64_t{4} << 30;
}

unsigned default_file_mode() {
#ifdef __linux__
  // umask() can only be read by setting it, which other threads would see.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    unsigned mask = 0;
    if (std::sscanf(line.c_str(), "Umask: %o", &mask) == 1) return 0666 & ~mask;
  }
#endif
  const mode_t mask = umask(077);
  umask(mask);
  return 0666 & ~static_cast<unsigned>(mask);
}

void on_fork_child(void (*forget)()) { pthread_atfork(nullptr, nullptr, forget); }

static size_t whole_pages(size_t size) {
  return size < huge_page ? size : (size + huge_page - 1) & ~(huge_page - 1);
}

std::byte* map_pages(size_t size) {
  size = whole_pages(size);
  const size_t spare = size < huge_page ? 0 : huge_page;  // for the alignment
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_NORESERVE
  flags |= MAP_NORESERVE;
#endif
  void* mapped = mmap(nullptr, size + spare, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapped);
  if (spare == 0) return begin;
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const size_t head = (huge_page - address % huge_page) % huge_page;
  if (head > 0) munmap(begin, head);
  if (huge_page > head) munmap(begin + head + size, huge_page - head);
#ifdef MADV_HUGEPAGE
  madvise(begin + head, size, MADV_HUGEPAGE);
#endif
  return begin + head;
}

void unmap_pages(std::byte* data, size_t size) { munmap(data, whole_pages(size)); }

void decommit(std::byte* data, size_t size) {
  if (size > 0) madvise(data, size, MADV_DONTNEED);
}

void offer(std::byte* data, size_t size) {
#ifdef MADV_FREE
  if (size > 0) madvise(data, size, MADV_FREE);
#else
  static_cast<void>(data), static_cast<void>(size);
#endif
}

int rename_new(const std::string& from, const std::string& to) {
#if defined(__linux__) && defined(SYS_renameat2)
  constexpr unsigned no_replace = 1;  // RENAME_NOREPLACE
  if (syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), no_replace) == 0) {
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) return errno;
#endif
  // A hard link refuses an existing name as well.
  if (link(from.c_str(), to.c_str()) != 0) return errno;
  unlink(from.c_str());
  return 0;
}

void begin_writeback([[maybe_unused]] int descriptor, [[maybe_unused]] uint64_t offset,
                     [[maybe_unused]] uint64_t size) {
#ifdef __linux__
  // What fails here fails again when the file is synced.
  sync_file_range(descriptor, static_cast<off64_t>(offset), static_cast<off64_t>(size),
                  SYNC_FILE_RANGE_WRITE);
#endif
}

int sync_directory(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno == EACCES ? 0 : errno;  // a drop box, which can be written but not read
  const int failed = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  // Some network file systems cannot sync a directory; the rename is as durable as they make it.
  return failed == EINVAL ? 0 : failed;
}

}  // namespace iac::platform
