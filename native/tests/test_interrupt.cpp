#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "iac/interrupt.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

struct Stop {};

static void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(60)); }

TEST_CASE("without an Interruptible nothing is checked") { CHECK_NOTHROW(check_interrupt()); }

TEST_CASE("what the check throws ends the work of its thread, of no other") {
  const Interruptible interruptible([] { throw Stop(); });
  wait();
  bool others_go_on = false;
  std::thread([&] {
    check_interrupt();
    others_go_on = true;
  }).join();
  CHECK(others_go_on);
  CHECK_THROWS_AS(check_interrupt(), Stop);
}

TEST_CASE("checks are some time apart") {
  int checks = 0;
  const Interruptible interruptible([&] { ++checks; });
  wait();
  for (int i = 0; i < 1000; ++i) check_interrupt();
  CHECK(checks >= 1);
  CHECK(checks < 100);
}

TEST_CASE("the inner check counts, and then the outer one again") {
  const Interruptible outer([] { throw Stop(); });
  wait();
  {
    const Interruptible inner([] {});
    CHECK_NOTHROW(check_interrupt());
  }
  wait();
  CHECK_THROWS_AS(check_interrupt(), Stop);
}

TEST_CASE("reading a batch is interrupted, stored or decoded, and works again afterwards") {
  const Folder folder;
  const auto codec = make_codec("zstd", "{}");
  write_file(folder / "pack.iac",
             parts_of({encoded(*codec, "a record")}, "{\"codec\": \"zstd\"}").bytes());
  const auto pack = Pack::open(folder / "pack.iac");
  const std::vector<int64_t> rows(100);
  ReadOptions options;
  options.decode = GENERATE(false, true);
  options.workers = 1;
  {
    const Interruptible interruptible([] { throw Stop(); });
    wait();
    CHECK_THROWS_AS(pack->read(rows, options), Stop);
  }
  CHECK(pack->read(rows, options).count == 100);
}
