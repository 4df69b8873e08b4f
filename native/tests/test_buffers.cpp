#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <new>
#include <thread>
#include <vector>

#include "iac/buffers.h"
#include "iac/platform.h"

using namespace iac;

constexpr uint64_t mib = uint64_t{1} << 20;

static bool is_aligned(const Buffer& buffer) {
  return reinterpret_cast<uintptr_t>(buffer.data()) % platform::huge_page == 0;
}

static uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

static Buffer filled(uint64_t size, bool tell = true) {
  Buffer buffer = Buffer::allocate(size);
  std::memset(buffer.data(), 1, size);
  if (tell) buffer.set_size(size);
  return buffer;
}

TEST_CASE("a buffer has room for what was asked, from nothing up") {
  CHECK(Buffer().data() == nullptr);
  CHECK(Buffer().capacity() == 0);
  for (const uint64_t size : {uint64_t{0}, uint64_t{1}, mib / 4 - 1, mib / 4, mib / 4 + 1,
                              2 * mib - 1, 2 * mib, 2 * mib + 1, 11 * mib}) {
    const Buffer buffer = filled(size);
    CHECK(buffer.data() != nullptr);
    CHECK(buffer.capacity() >= size);
    CHECK(buffer.size() == size);
    if (size >= 2 * mib) CHECK(is_aligned(buffer));
  }
}

TEST_CASE("copies of a buffer share its memory") {
  Buffer first = filled(5 * mib);
  const Buffer copy = first;
  std::byte* const data = first.data();
  first = Buffer();
  CHECK(copy.data() == data);
  CHECK(copy.data()[5 * mib - 1] == std::byte{1});
}

TEST_CASE("impossible sizes are bad_alloc") {
  CHECK_THROWS_AS(Buffer::allocate(UINT64_MAX), std::bad_alloc);
  CHECK_THROWS_AS(Buffer::allocate((uint64_t{1} << 46) + 1), std::bad_alloc);
}

TEST_CASE("a large buffer is used again, by one of at most twice its size fewer") {
  const uint64_t unit = GENERATE(mib / 64, mib);
  std::byte* data = nullptr;
  {
    const Buffer buffer = filled(96 * unit);
    data = buffer.data();
  }
  CHECK(Buffer::allocate(40 * unit).data() != data);
  {
    const Buffer again = Buffer::allocate(90 * unit);
    CHECK(again.data() == data);
    CHECK(Buffer::allocate(90 * unit).data() != data);
  }
}

TEST_CASE("kept memory has a bound, whatever its last users said of it", "[memory]") {
  const uint64_t before = resident_bytes();
  for (const bool tell : {true, false}) {
    std::vector<Buffer> many;
    for (int i = 0; i < 10; ++i) many.push_back(filled(64 * mib, tell));
    CHECK(resident_bytes() > 600 * mib);
    many.clear();
    CHECK(resident_bytes() < before + 300 * mib);
  }
}

TEST_CASE("untouched memory costs nothing", "[memory]") {
  const uint64_t before = resident_bytes();
  Buffer buffer = Buffer::allocate(uint64_t{8} << 30);
  buffer.data()[0] = std::byte{1};
  CHECK(resident_bytes() < before + 100 * mib);
}

TEST_CASE("threads take and give back buffers together") {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (uint64_t i = 0; i < 200; ++i) {
        Buffer buffer = Buffer::allocate((1 + (i + static_cast<uint64_t>(t)) % 5) * mib);
        std::memset(buffer.data(), t, 4096);
        buffer.set_size(4096);
        if (buffer.data()[4095] != static_cast<std::byte>(t)) std::abort();
      }
    });
  }
  for (auto& thread : threads) thread.join();
}
