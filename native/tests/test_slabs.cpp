#include <catch2/catch.hpp>

#include "iac/checksum.h"
#include "iac/slabs.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

namespace {

constexpr uint64_t span_bytes = uint64_t{20} << 20;  // two are more than a slab

// The same bytes again and again, a slab each.
struct Repeated {
  std::string bytes = std::string(span_bytes, 'x');
  Segment data{0, span_bytes};
  std::vector<Span> spans;
  std::vector<uint64_t> places{0};
  RemoteFile file{bytes, ""};

  explicit Repeated(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      spans.push_back({0, span_bytes, crc32(bytes_of(bytes)), 0, true});
      places.push_back(places.back() + span_bytes);
    }
  }

  // Positions of the slabs that were used.
  std::vector<size_t> used(const Source& source, OnError rule, Failures& failures) const {
    std::vector<size_t> firsts;
    for_each_slab({source, data, spans, places, 2, true, rule}, failures,
                  [&](size_t first, std::span<const Bytes> payloads) {
                    REQUIRE(payloads.size() == 1);
                    if (!failures.at(first)) CHECK(text_of(payloads[0]) == bytes);
                    firsts.push_back(first);
                  });
    return firsts;
  }
};

using Firsts = std::vector<size_t>;

}  // namespace

TEST_CASE("slabs come one after the other, and a failure ends them only where it is an error") {
  Repeated all(5);
  all.spans[1].crc32 ^= 1;
  for (const OnError rule : {OnError::null, OnError::skip, OnError::raise}) {
    const MemorySource source(all.bytes);
    Failures failures(5);
    const Firsts expected = rule == OnError::raise ? Firsts{0, 1} : Firsts{0, 1, 2, 3, 4};
    CHECK(all.used(source, rule, failures) == expected);
    CHECK(failures.at(1));
  }
}

TEST_CASE("a failure of a later record does not hide that of an earlier one") {
  Repeated all(4);
  all.spans[2].crc32 ^= 1;
  const MemorySource source(all.bytes);
  Failures failures(4);
  failures.add(3, Error(Error::Kind::index, "not there"));
  CHECK(all.used(source, OnError::raise, failures) == Firsts{0, 1, 2});
  CHECK(thrown_by([&] { failures.finish(OnError::raise, {}, {}); }).row == 2);
}

TEST_CASE("where reads are expensive slabs are used in order, and what use throws is thrown") {
  Repeated all(4);
  const auto source = TestRemote::started(all.file, {4096, span_bytes, 2});
  Failures failures(4);
  CHECK(all.used(*source, OnError::raise, failures) == Firsts{0, 1, 2, 3});
  all.spans[1].crc32 ^= 1;
  const Firsts used = all.used(*source, OnError::raise, failures);
  CHECK(used.size() >= 2);
  CHECK(used.size() <= 3);
  for (const size_t wrong : {0, 2, 3}) {
    Failures others(4);
    const Thrown thrown = thrown_by([&] {
      for_each_slab({*source, all.data, all.spans, all.places, 2, false, OnError::raise}, others,
                    [&](size_t first, std::span<const Bytes>) {
                      if (first == wrong) throw Error(Error::Kind::argument, "too much");
                    });
    });
    CHECK(thrown.text == "too much");
  }
}

TEST_CASE("no records are no slabs") {
  const Repeated none(0);
  const MemorySource source("");
  Failures failures(size_t{0});
  CHECK(none.used(source, OnError::raise, failures).empty());
}
