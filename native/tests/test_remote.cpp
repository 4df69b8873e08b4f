#include <catch2/catch.hpp>

#include "iac/gather.h"
#include "iac/pack.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

namespace {

std::string read_range(const Source& source, uint64_t offset, size_t length) {
  std::string out(length, '?');
  source.read_at(offset, std::as_writable_bytes(std::span(out)));
  return out;
}

// A file whose head is not all of it.
RemoteFile long_file() {
  std::mt19937_64 random(1);
  return {noise(random, RemoteSource::first_bytes + 300000)};
}

constexpr uint64_t behind_head = RemoteSource::first_bytes;

RemoteFile pack_file(size_t records, size_t record_bytes, size_t batch_rows = SIZE_MAX) {
  std::mt19937_64 random(2);
  std::vector<std::string> stored;
  for (size_t i = 0; i < records; ++i) stored.push_back(noise(random, record_bytes));
  return {parts_of(stored, "{}", batch_rows).bytes()};
}

std::shared_ptr<const Pack> open_remote(const std::shared_ptr<TestRemote>& source) {
  return Pack::open(source, "test.iac");
}

}  // namespace

TEST_CASE("reads give the bytes of the file, whatever they are split into") {
  const RemoteFile file = long_file();
  const auto source = TestRemote::started(file);
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const uint64_t offset = random() % file.bytes.size();
    const uint64_t length = random() % std::min<uint64_t>(50000, file.bytes.size() - offset);
    REQUIRE(read_range(*source, offset, length) == file.bytes.substr(offset, length));
  }
  CHECK(contains(thrown_by([&] { read_range(*source, file.bytes.size() - 5, 6); }).text,
                 "file ends at byte"));
}

TEST_CASE("the head is one request, and what lies in it none") {
  const RemoteFile file = long_file();
  const auto source = TestRemote::started(file, remote_style);
  CHECK(source->requests() == 1);
  CHECK(source->bytes_received() == RemoteSource::first_bytes);
  read_range(*source, 0, RemoteSource::first_bytes);
  CHECK(source->requests() == 1);
  read_range(*source, RemoteSource::first_bytes - 10, 20);
  CHECK(source->requests() == 2);
  CHECK(source->bytes_received() == RemoteSource::first_bytes + 10);
}

TEST_CASE(
    "a long read is split into groups, several at a time but never more than the style says") {
  const RemoteFile file = long_file();
  const auto source = TestRemote::started(file);
  source->delay = std::chrono::milliseconds(5);
  const uint64_t before = source->requests();
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] { read_range(*source, behind_head, 200000); });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(source->requests() - before == 60);
  CHECK(source->most_under_way == TestRemote::small.at_once);
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(60 * 5));
}

TEST_CASE("an answer of another length than asked for is an error") {
  const RemoteFile file = long_file();
  const auto source = TestRemote::started(file);
  source->longer = -1;
  CHECK(contains(thrown_by([&] { read_range(*source, behind_head, 100); }).text,
                 "asked for 100 bytes at 262144, the answer has 99: has the file changed?"));
  source->longer = 1000;
  CHECK(contains(thrown_by([&] { read_range(*source, behind_head, 100); }).text,
                 "the answer has 1100: does the server ignore ranges?"));
  const auto other = std::make_shared<TestRemote>(file);
  other->longer = 1;
  CHECK(thrown_by([&] { other->start("named.iac"); }).text.starts_with("named.iac: asked for"));
}

TEST_CASE("identities are those of size, header and version") {
  RemoteFile file = long_file();
  const auto identity = [](const RemoteFile& f) { return TestRemote::started(f)->identity(); };
  const std::string first = identity(file);
  CHECK(identity(file) == first);
  RemoteFile other = file;
  other.version = "2";
  CHECK(identity(other) != first);
  other = file;
  other.bytes.push_back('x');
  CHECK(identity(other) != first);
  other = file;
  other.bytes[100] ^= 1;
  CHECK(identity(other) != first);
}

TEST_CASE("a file that changed is an error for ever, one that did not is asked for once a fetch") {
  for (const bool tells_version : {true, false}) {
    RemoteFile file = long_file();
    if (!tells_version) file.version.clear();
    const auto source = TestRemote::started(file);
    source->tells_version = tells_version;
    source->confirm();  // the head came in many pieces
    CHECK(source->version_questions == 1);
    source->confirm();
    CHECK(source->version_questions == 1);
    read_range(*source, behind_head, 10);
    source->confirm();
    source->confirm();
    CHECK(source->version_questions == 2);
    const RemoteFile old = file;
    if (tells_version) {
      file.version = "2";
    } else {
      file.bytes[17] ^= 1;
    }
    source->confirm();  // nothing was read since
    read_range(*source, behind_head, 10);
    CHECK(contains(thrown_by([&] { source->confirm(); }).text, "has changed since it was opened"));
    file = old;
    CHECK(contains(thrown_by([&] { source->confirm(); }).text, "has changed since it was opened"));
  }
}

TEST_CASE("a failed read is asked about as well: the file may have gone") {
  RemoteFile file = long_file();
  const auto source = TestRemote::started(file);
  source->confirm();
  file.version = "2";
  source->longer = -1;
  CHECK(thrown_by([&] { read_range(*source, behind_head, 10); }).any);
  CHECK(contains(thrown_by([&] { source->confirm(); }).text, "has changed since it was opened"));
}

TEST_CASE("a small remote pack is opened with one request, a middling one with two") {
  const RemoteFile small = pack_file(1000, 10);
  const auto source = TestRemote::started(small, remote_style);
  const auto pack = open_remote(source);
  CHECK(source->requests() == 1);
  ReadOptions options;
  CHECK(pack->read(std::vector<int64_t>{5}, options).count == 1);
  CHECK(pack->index()->column(0, 0)->length() == 1000);
  CHECK(source->requests() == 1);
  CHECK(source->version_questions == 0);

  const RemoteFile middling = pack_file(30000, 10);
  const auto other = TestRemote::started(middling, remote_style);
  const auto other_pack = open_remote(other);
  CHECK(other->requests() == 2);
  CHECK(other_pack->index()->column(2, 0)->length() == 30000);
  CHECK(other->requests() == 2);
}

TEST_CASE("of a large index only the columns and rows asked for are fetched") {
  const size_t records = 400000;  // tables of 6.4 MB
  const RemoteFile file = pack_file(records, 1);
  const auto source = TestRemote::started(file, remote_style);
  const auto pack = open_remote(source);
  const uint64_t opened = source->bytes_received();
  CHECK(opened < 2 * RemoteSource::first_bytes);
  CHECK(pack->index()->column(1, 0)->length() == static_cast<int64_t>(records));
  CHECK(source->bytes_received() - opened < records * 4 + 10000);

  const uint64_t requests = source->requests(), bytes = source->bytes_received();
  const std::vector<int64_t> rows{3, 399999, 200000, 4};
  const Batch batch = pack->read(rows, {});
  CHECK(records_of(batch)[1] == file.bytes.substr(file.bytes.size() - 1));
  CHECK(source->requests() - requests <= 3 * 3 + 3);  // blocks of three columns, then the records
  CHECK(source->bytes_received() - bytes < 3 * 1024 * 16 + 10000);
}

TEST_CASE("shuffled rows of a remote pack are few requests and the same bytes") {
  const RemoteFile file = pack_file(3000, 300);
  const auto local = open_bytes(file.bytes);
  std::mt19937_64 random(4);
  std::vector<int64_t> rows;
  for (int i = 0; i < 500; ++i) rows.push_back(static_cast<int64_t>(random() % 3000));
  const auto source = TestRemote::started(file);
  const auto pack = open_remote(source);
  const uint64_t opened = source->requests();
  for (const bool decode : {true, false}) {
    ReadOptions options;
    options.decode = decode;
    CHECK(records_of(pack->read(rows, options)) == records_of(local->read(rows, options)));
  }
  const size_t groups = file.bytes.size() / TestRemote::small.group + 1;
  CHECK(source->requests() - opened <= 2 * 2 * groups);
}

TEST_CASE("records that the crc32 vouches for are not asked about, others are") {
  RemoteFile file = pack_file(300, 2000);
  const auto source = TestRemote::started(file);
  const auto pack = open_remote(source);
  const std::vector<int64_t> rows{250, 299};
  const unsigned before = source->version_questions;
  pack->read(rows, {});
  CHECK(source->version_questions == before);
  ReadOptions unverified;
  unverified.verify = false;
  pack->read(rows, unverified);
  CHECK(source->version_questions == before + 1);

  file.version = "2";
  CHECK(pack->read(rows, {}).count == 2);  // the same bytes
  CHECK(contains(thrown_by([&] { pack->read(rows, unverified); }).text, "has changed"));
}

TEST_CASE("damaged records of a file that changed are no damage but the change") {
  RemoteFile file = pack_file(300, 2000);
  const auto source = TestRemote::started(file);
  const auto pack = open_remote(source);
  ReadOptions options;
  options.on_error = OnError::null;
  file.bytes.back() ^= 1;
  const std::vector<int64_t> rows{1, 299};
  const Batch batch = pack->read(rows, options);
  REQUIRE(batch.failures.size() == 1);
  CHECK(batch.failures[0].error.kind() == Error::Kind::checksum);
  file.version = "2";
  CHECK(contains(thrown_by([&] { pack->read(rows, options); }).text,
                 "test.iac: the file has changed since it was opened"));
}

TEST_CASE("a store that fails is not asked again for every group") {
  const RemoteFile file = pack_file(3000, 300);
  const auto source = TestRemote::started(file);
  const auto pack = open_remote(source);
  pack->locate(std::vector<int64_t>{0, 1500, 2999});
  source->before = [](uint64_t, uint64_t) {
    throw Error(Error::Kind::system, "the network is down", EIO);
  };
  const uint64_t before = source->requests();
  std::vector<int64_t> rows(3000);
  std::iota(rows.begin(), rows.end(), 0);
  ReadOptions options;
  options.on_error = OnError::null;
  const Batch batch = pack->read(rows, options);
  CHECK(batch.failures.size() > 2000);  // some records are in the head
  CHECK(contains(batch.failures.back().error.what(), "row 2999: the network is down"));
  CHECK(source->requests() - before <= TestRemote::small.at_once);
}

TEST_CASE("many threads read one remote pack") {
  const RemoteFile file = pack_file(3000, 300);
  const auto local = open_bytes(file.bytes);
  const auto source = TestRemote::started(file);
  const auto pack = open_remote(source);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<int64_t> rows;
      for (int i = 0; i < 200; ++i) rows.push_back(static_cast<int64_t>(random() % 3000));
      if (records_of(pack->read(rows, {})) != records_of(local->read(rows, {}))) ++wrong;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(source->most_under_way <= TestRemote::small.at_once);
}
