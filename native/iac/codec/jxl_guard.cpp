// Distributions ship libjxl compiled as for its developers: it writes a line to stderr for each
// payload that it rejects, and ends the process where an assertion fails, which some images bring
// about. It also trusts the sizes of the layers in an image, which may be far larger than the
// image. Its interface has nothing against any of this. But all of it goes through a few functions
// of other libraries, so libjxl's imports of these are pointed to functions here.
#include "iac/codec/jxl_guard.h"

#include <jxl/decode.h>

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
#define IAC_JXL_IMPORTS 1
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace iac::jxl {
namespace {

thread_local bool guarded = false;
thread_local size_t largest_allocation = SIZE_MAX;

#ifdef IAC_JXL_IMPORTS

// What the imports pointed to before: the C library, or another copy of this file in the process.
int (*other_vfprintf)(FILE*, int, const char*, va_list) = nullptr;
int (*other_fprintf)(FILE*, int, const char*, ...) = nullptr;
int (*other_printf)(int, const char*, ...) = nullptr;
void* (*other_malloc)(size_t) = nullptr;
using AlignedAllocator = void* (*)(void*, size_t);
void* (*other_aligned)(size_t, AlignedAllocator, void*) = nullptr;

struct Message {
  std::array<char, 1024> text;
  Message(const char* format, va_list values) {
    vsnprintf(text.data(), text.size(), format, values);
    if (!guarded) return;
    const std::string_view view(text.data());
    for (const char* fatal : {"JXL_ASSERT: ", "JXL_DASSERT: ", "JXL_CHECK: ", "JXL_ABORT: "}) {
      if (view.find(fatal) != std::string_view::npos) throw Guard::Failed{};
    }
  }
};

int guarded_vfprintf(FILE* file, int flag, const char* format, va_list values) {
  if (guarded) {
    Message(format, values);
    return 0;
  }
  return other_vfprintf(file, flag, format, values);
}

int guarded_fprintf(FILE* file, int flag, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const Message message(format, values);
  va_end(values);
  return guarded ? 0 : other_fprintf(file, flag, "%s", message.text.data());
}

int guarded_printf(int flag, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const Message message(format, values);
  va_end(values);
  return guarded ? 0 : other_printf(flag, "%s", message.text.data());
}

void* guarded_malloc(size_t size) {
  if (size > largest_allocation) throw Guard::Failed{};
  return other_malloc(size);
}

// hwy::AllocateAlignedBytes
void* guarded_aligned(size_t size, AlignedAllocator allocator, void* opaque) {
  if (size > largest_allocation) throw Guard::Failed{};
  return other_aligned(size, allocator, opaque);
}

// A loaded library's tables of imports, see elf(5).
struct Tables {
  uintptr_t base = 0;
  uintptr_t relro = 0, relro_end = 0;  // made read-only after loading
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * imports[2] = {nullptr, nullptr};
  size_t sizes[2] = {0, 0};
};

Tables tables_of(const dl_phdr_info& library, const ElfW(Dyn) * dynamic) {
  Tables tables;
  tables.base = library.dlpi_addr;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const uintptr_t value = dynamic->d_un.d_ptr;  // the loader has made addresses absolute
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        tables.symbols = reinterpret_cast<const ElfW(Sym)*>(value);
        break;
      case DT_STRTAB:
        tables.names = reinterpret_cast<const char*>(value);
        break;
      case DT_JMPREL:
        tables.imports[0] = reinterpret_cast<const ElfW(Rela)*>(value);
        break;
      case DT_PLTRELSZ:
        tables.sizes[0] = value / sizeof(ElfW(Rela));
        break;
      case DT_RELA:
        tables.imports[1] = reinterpret_cast<const ElfW(Rela)*>(value);
        break;
      case DT_RELASZ:
        tables.sizes[1] = value / sizeof(ElfW(Rela));
        break;
      default:
        break;
    }
  }
  return tables;
}

bool is_import(const ElfW(Rela) & entry) {
  const auto type = ELF64_R_TYPE(entry.r_info);
#ifdef __x86_64__
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
#else
  return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
#endif
}

template <class Function>
void redirect(const Tables& tables, const ElfW(Rela) & entry, Function* to, Function*& before) {
  auto* slot = reinterpret_cast<Function**>(tables.base + entry.r_offset);
  const auto at = reinterpret_cast<uintptr_t>(slot);
  const auto page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* page = reinterpret_cast<void*>(at & ~(page_size - 1));
  const bool read_only = at >= tables.relro && at < tables.relro_end;
  if (read_only && mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return;
  before = *slot;
  __atomic_store_n(slot, to, __ATOMIC_RELEASE);
  if (read_only) mprotect(page, page_size, PROT_READ);
}

void redirect_imports(const Tables& tables) {
  if (tables.symbols == nullptr || tables.names == nullptr) return;
  for (int table = 0; table < 2; ++table) {
    for (size_t i = 0; i < tables.sizes[table]; ++i) {
      const ElfW(Rela) & entry = tables.imports[table][i];
      if (!is_import(entry)) continue;
      const std::string_view name(tables.names + tables.symbols[ELF64_R_SYM(entry.r_info)].st_name);
      if (name == "__vfprintf_chk") redirect(tables, entry, &guarded_vfprintf, other_vfprintf);
      if (name == "__fprintf_chk") redirect(tables, entry, &guarded_fprintf, other_fprintf);
      if (name == "__printf_chk") redirect(tables, entry, &guarded_printf, other_printf);
      if (name == "malloc") redirect(tables, entry, &guarded_malloc, other_malloc);
      if (name == "_ZN3hwy20AllocateAlignedBytesEmPFPvS0_mES0_") {
        redirect(tables, entry, &guarded_aligned, other_aligned);
      }
    }
  }
}

int visit(dl_phdr_info* library, size_t, void*) {
  const auto inside = reinterpret_cast<uintptr_t>(&JxlDecoderCreate);
  const ElfW(Dyn)* dynamic = nullptr;
  uintptr_t relro = 0, relro_end = 0;
  bool found = false;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = library->dlpi_phdr[i];
    const uintptr_t start = library->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && inside >= start && inside < start + part.p_memsz) found = true;
    if (part.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(start);
    if (part.p_type == PT_GNU_RELRO) {
      relro = start;
      relro_end = start + part.p_memsz;
    }
  }
  if (!found || dynamic == nullptr) return 0;
  Tables tables = tables_of(*library, dynamic);
  tables.relro = relro;
  tables.relro_end = relro_end;
  redirect_imports(tables);
  return 1;
}

void prepare() {
  static const int once = dl_iterate_phdr(&visit, nullptr);
  static_cast<void>(once);
}

#else

void prepare() {}

#endif

}  // namespace

Guard::Guard() {
  prepare();
  guarded = true;
}

Guard::~Guard() {
  guarded = false;
  largest_allocation = SIZE_MAX;
}

void Guard::limit_allocations(size_t bytes) const { largest_allocation = bytes; }

}  // namespace iac::jxl
