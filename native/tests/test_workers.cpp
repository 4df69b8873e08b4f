#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <numeric>
#include <thread>

#include "iac/interrupt.h"
#include "iac/platform.h"
#include "iac/workers.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

TEST_CASE("workers are never more than processors or items, and at least one") {
  const unsigned cpus = platform::usable_cpus();
  CHECK(worker_count(0, 1000) == cpus);
  CHECK(worker_count(1, 1000) == 1);
  CHECK(worker_count(1000000, 1000) == cpus);
  CHECK(worker_count(0, 1) == 1);
  CHECK(worker_count(0, 0) == 1);
  CHECK(worker_count(5, 0) == 1);
}

TEST_CASE("each item runs once") {
  for (const unsigned workers : {1u, 2u, 7u}) {
    for (const size_t items : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> runs(items);
      parallel_for(items, workers, [&](size_t i) { ++runs[i]; });
      for (const auto& count : runs) REQUIRE(count == 1);
    }
  }
}

TEST_CASE("the error of the lowest failed item is thrown, and the pool goes on working") {
  for (const unsigned workers : {1u, 2u}) {
    for (int round = 0; round < 50; ++round) {
      std::atomic<size_t> runs{0};
      const auto failing = [&](size_t i) {
        ++runs;
        if (i == 3 || i == 700) throw std::runtime_error(std::to_string(i));
      };
      std::string text;
      try {
        parallel_for(1000, workers, failing);
      } catch (const std::runtime_error& error) {
        text = error.what();
      }
      CHECK(text == "3");
      CHECK(runs < 1000);
    }
  }
  std::atomic<size_t> sum{0};
  parallel_for(100, 2, [&](size_t i) { sum += i; });
  CHECK(sum == 4950);
}

TEST_CASE("many callers at once, and calls within calls, all end") {
  std::vector<std::thread> callers;
  std::atomic<size_t> sum{0};
  for (int t = 0; t < 16; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        parallel_for(10, 4, [&](size_t) { parallel_for(10, 4, [&](size_t i) { sum += i; }); });
      }
    });
  }
  for (auto& caller : callers) caller.join();
  CHECK(sum == 16 * 20 * 10 * 45);
}

// What a child does after the fork: 0 when all of it went well.
static int child_work(const std::string& path) {
  try {
    std::atomic<size_t> sum{0};
    parallel_for(100, 2, [&](size_t i) { sum += i; });
    if (sum != 4950) return 2;
    std::vector<int64_t> rows(200);
    std::iota(rows.begin(), rows.end(), 0);
    const Batch batch = Pack::open(path)->read(rows, {});
    return batch.count == 200 && record_of(batch, 199) == std::string(1000, static_cast<char>(199))
               ? 0
               : 3;
  } catch (...) {
    return 4;
  }
}

static void wait_until_stopped() {
  while (!stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_CASE("the first error of bodies that wait stops the others, and is the one thrown") {
  std::atomic<int> stopped = 0;
  const auto body = [&](size_t item) {
    if (item == 3) throw std::runtime_error("the first");
    wait_until_stopped();
    ++stopped;
    throw std::runtime_error("stopped");
  };
  CHECK_THROWS_WITH(concurrent_for(100, 4, body), "the first");
  CHECK(stopped == 3);
  CHECK_FALSE(stop_requested());
}

TEST_CASE("a caller that is done with its own bodies can end those of others") {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> waiting = 0;
  const auto body = [&](size_t) {
    if (std::this_thread::get_id() == caller) {
      while (waiting < 2) std::this_thread::yield();
    } else {
      ++waiting;
      wait_until_stopped();
    }
  };
  int checks = 0;
  const Interruptible interruptible([&] {
    CHECK(std::this_thread::get_id() == caller);
    if (++checks == 2) throw std::runtime_error("interrupted");
  });
  CHECK_THROWS_WITH(concurrent_for(1000, 3, body), "interrupted");
  CHECK(checks == 2);
}

TEST_CASE("an error stops what bodies wait for in turn, and nothing around them") {
  std::atomic<bool> inner_stopped = false;
  concurrent_for(2, 2, [&](size_t) {
    const auto fail = [](size_t) { throw std::runtime_error("inside"); };
    CHECK_THROWS(concurrent_for(2, 2, fail));
    CHECK_FALSE(stop_requested());
  });
  std::stop_source stop;
  std::thread([&] {
    stop_this_thread_by(stop.get_token());
    stop.request_stop();
    concurrent_for(1, 1, [&](size_t) { inner_stopped = stop_requested(); });
  }).join();
  CHECK(inner_stopped);
}

TEST_CASE("a child forked while other threads work has workers of its own", "[fork]") {
  const Folder folder;
  const auto codec = make_codec("zstd", "{}");
  std::vector<std::string> stored;
  for (int i = 0; i < 200; ++i)
    stored.push_back(encoded(*codec, std::string(1000, static_cast<char>(i))));
  write_file(folder / "pack.iac", parts_of(stored, "{\"codec\": \"zstd\"}").bytes());
  const auto pack = Pack::open(folder / "pack.iac");

  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int t = 0; t < 3; ++t) {
    busy.emplace_back([&] {
      std::vector<int64_t> rows(200);
      std::iota(rows.begin(), rows.end(), 0);
      while (!stop) {
        parallel_for(50, 2,
                     [](size_t) { std::this_thread::sleep_for(std::chrono::microseconds(10)); });
        ReadOptions options;
        options.workers = 2;
        pack->read(rows, options);
      }
    });
  }
  int failed = 0;
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a child that hangs dies and fails the test
      // The parent's open pack works here too.
      const int64_t row = 7;
      int result = child_work(folder / "pack.iac");
      if (result == 0 && record_of(pack->read({&row, 1}, {}), 0) != std::string(1000, '\7'))
        result = 5;
      _exit(result);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) ++failed;
  }
  stop = true;
  for (auto& thread : busy) thread.join();
  CHECK(failed == 0);
}
