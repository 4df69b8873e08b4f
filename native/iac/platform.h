// Calls that differ between operating systems, each with a portable fallback.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace iac::platform {

// Processors this process may use (its affinity mask, not the machine's count); at least 1.
unsigned usable_cpus();

// Bytes of physical memory.
uint64_t physical_memory();

// The mode a new file would get from 0666 and this process's umask.
unsigned default_file_mode();

// Runs `forget` in every child forked from here on. For state that another thread of the parent
// may have been changing at the moment of the fork.
void on_fork_child(void (*forget)());

// Memory from the system, committed when it is touched. From 2 MiB on it is aligned to and rounded
// up to 2 MiB, in huge pages where there are any. nullptr when the address space is full.
constexpr size_t huge_page = size_t{2} << 20;
std::byte* map_pages(size_t size);
void unmap_pages(std::byte* data, size_t size);

// Gives pages of such memory back to the system; they stay usable, with any content.
void decommit(std::byte* data, size_t size);

// Lets the system take such memory, and its content, when it runs short; it stays usable.
void offer(std::byte* data, size_t size);

// Lets the system begin to write a part of a file to its disk, so that syncing it has less to do.
void begin_writeback(int descriptor, uint64_t offset, uint64_t size);

// Renames without replacing: 0, or the errno (EEXIST when `to` exists).
int rename_new(const std::string& from, const std::string& to);

// Makes a rename in `directory` durable: 0, or the errno.
int sync_directory(const std::string& directory);

}  // namespace iac::platform
