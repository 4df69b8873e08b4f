#include <catch2/catch.hpp>

#include "iac/gather.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

namespace {

struct Gathered {
  std::vector<std::string> records;
  std::vector<RowFailure> failures;
};

Gathered gather_all(const Source& source, const Segment& data, const std::vector<Span>& spans,
                    unsigned workers = 1, bool verify = true) {
  std::vector<uint64_t> places, lengths;
  uint64_t size = 0;
  for (const Span& span : spans) {
    places.push_back(size);
    lengths.push_back(span.length);
    size += span.length;
  }
  Buffer out = Buffer::allocate(size);
  Failures failures(spans.size());
  gather({source, data, spans, places, out.data(), workers, verify}, 0, failures);
  Gathered all;
  const Batch batch = failures.finish(OnError::null, out, lengths);
  all.records = records_of(batch);
  all.failures = batch.failures;
  return all;
}

Span span_of(const std::string& data, uint64_t offset, uint64_t length) {
  return {offset, length, crc32(bytes_of(data).subspan(offset, length)), 0, true};
}

// Duplicates, overlaps, gaps, nothing at all: what an index may hold.
std::vector<Span> random_spans(const std::string& data, size_t count, std::mt19937_64& random) {
  std::vector<Span> spans;
  uint64_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    uint64_t length = random() % 4 == 0 ? 0 : random() % (random() % 10 == 0 ? 100000 : 300);
    switch (random() % 6) {
      case 0:
        at = random() % data.size();
        break;  // anywhere
      case 1:
        at += random() % 10000;
        break;  // a gap
      case 2:
        at -= std::min(at, random() % 500);
        break;  // an overlap
      case 3:
        if (!spans.empty()) {
          spans.push_back(spans[random() % spans.size()]);
        }
        break;
      default:
        break;  // the neighbour
    }
    at = std::min<uint64_t>(at, data.size());
    length = std::min<uint64_t>(length, data.size() - at);
    spans.push_back(span_of(data, at, length));
    at += length;
  }
  if (random() % 3 == 0) std::shuffle(spans.begin(), spans.end(), random);
  return spans;
}

}  // namespace

TEST_CASE("a gather gives the bytes that reading span by span gives") {
  std::mt19937_64 random(1);
  const std::string data = noise(random, 2 << 20);
  const FaultySource source("head" + data + "tail", {.at_most = 200000, .interrupted = true});
  for (int round = 0; round < 60; ++round) {
    const auto spans = random_spans(data, random() % 600, random);
    const Gathered found = gather_all(source, {4, data.size()}, spans, 1 + round % 3);
    CHECK(found.failures.empty());
    REQUIRE(found.records.size() == spans.size());
    for (size_t i = 0; i < spans.size(); ++i) {
      REQUIRE(found.records[i] == data.substr(spans[i].offset, spans[i].length));
    }
  }
}

TEST_CASE("neighbouring spans are one read, far ones are not") {
  const std::string data(3 << 20, 'x');
  const auto reads_of = [&](std::vector<Span> spans) {
    const FaultySource source(data, {});
    gather_all(source, {0, data.size()}, spans);
    return source.calls.load();
  };
  std::vector<Span> row;
  for (uint64_t i = 0; i < 100; ++i) row.push_back(span_of(data, i * 100, 100));
  CHECK(reads_of(row) == 1);
  std::reverse(row.begin(), row.end());
  CHECK(reads_of(row) == 1);
  CHECK(reads_of({span_of(data, 0, 10), span_of(data, 4000, 10)}) == 1);
  CHECK(reads_of({span_of(data, 0, 10), span_of(data, 10 + 4096, 10)}) == 1);
  CHECK(reads_of({span_of(data, 0, 10), span_of(data, 10 + 4097, 10)}) == 2);
  CHECK(reads_of({span_of(data, 0, 200 << 10), span_of(data, 200 << 10, 200 << 10)}) == 2);
  // Where spans overlap they are one read only if they are short.
  CHECK(reads_of({span_of(data, 0, 10), span_of(data, 5, 10)}) == 1);
  CHECK(reads_of({span_of(data, 0, 2000), span_of(data, 5, 2000)}) == 2);
  CHECK(reads_of({span_of(data, 0, 0), span_of(data, data.size(), 0)}) == 0);
}

TEST_CASE("a span that cannot be read spoils only itself") {
  std::mt19937_64 random(2);
  const std::string data = noise(random, 100000);
  FaultySource source(data, {.bad_from = 5050, .bad_to = 5051});
  std::vector<Span> spans;
  for (uint64_t i = 0; i < 100; ++i) spans.push_back(span_of(data, i * 100, 100));
  for (const unsigned workers : {1u, 2u}) {
    const Gathered found = gather_all(source, {0, data.size()}, spans, workers);
    REQUIRE(found.failures.size() == 1);
    CHECK(found.failures[0].position == 50);
    CHECK(found.failures[0].error.code() == EIO);
    for (size_t i = 0; i < 100; ++i) {
      if (i != 50) REQUIRE(found.records[i] == data.substr(i * 100, 100));
    }
  }
}

TEST_CASE("bytes between spans that cannot be read spoil nothing") {
  std::mt19937_64 random(3);
  const std::string data = noise(random, 1000);
  FaultySource source(data, {.bad_from = 150, .bad_to = 160});
  const Gathered found =
      gather_all(source, {0, data.size()}, {span_of(data, 0, 100), span_of(data, 200, 100)});
  CHECK(found.failures.empty());
  CHECK(found.records[1] == data.substr(200, 100));
}

TEST_CASE("spans behind the end of a truncated file fail, those before do not") {
  std::mt19937_64 random(4);
  const std::string data = noise(random, 1000);
  FaultySource source(data, {.cut_at = 250});
  const Gathered found = gather_all(source, {0, data.size()},
                                    {span_of(data, 240, 20), span_of(data, 0, 250),
                                     span_of(data, 900, 10), span_of(data, 1000, 0)});
  REQUIRE(found.failures.size() == 2);
  CHECK(found.failures[0].position == 0);
  CHECK(found.failures[1].position == 2);
  CHECK(contains(found.failures[1].error.reason(), "file ends at byte 900"));
  CHECK(found.records[1] == data.substr(0, 250));
}

TEST_CASE("bytes that differ from their crc32 fail unless nobody asks") {
  std::mt19937_64 random(5);
  std::string data = noise(random, 1000);
  std::vector<Span> spans{span_of(data, 0, 100), span_of(data, 100, 100), span_of(data, 200, 0)};
  spans[2].crc32 = 1;  // that of nothing is 0
  data[150] ^= 1;
  const MemorySource source(data);
  const Gathered found = gather_all(source, {0, data.size()}, spans);
  REQUIRE(found.failures.size() == 2);
  CHECK(found.failures[0].position == 1);
  CHECK(found.failures[0].error.kind() == Error::Kind::checksum);
  CHECK(found.failures[1].position == 2);
  CHECK(contains(found.failures[1].error.reason(), "0x00000000, the index says 0x00000001"));

  CHECK(gather_all(source, {0, data.size()}, spans, 1, false).failures.empty());
  for (Span& span : spans) span.has_crc32 = false;
  CHECK(gather_all(source, {0, data.size()}, spans).failures.empty());
}

TEST_CASE("short records behind one that is longer than a read stay within their memory") {
  std::string data(300000, 'x');
  for (size_t i = 0; i < 400; ++i) data += "abc";
  const MemorySource source(data);
  std::vector<Span> spans{span_of(data, 0, 300000), span_of(data, 0, 0), span_of(data, 1000, 20)};
  for (size_t i = 0; i < 400; ++i) spans.push_back(span_of(data, 300000 + 3 * i, 3));
  for (int round = 0; round < 20; ++round) {
    const Gathered gathered = gather_all(source, {0, data.size()}, spans);
    REQUIRE(gathered.failures.empty());
    REQUIRE(gathered.records[0] == data.substr(0, 300000));
    REQUIRE(gathered.records[1].empty());
    REQUIRE(gathered.records[402] == "abc");
  }
}
