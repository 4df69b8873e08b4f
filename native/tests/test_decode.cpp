#include <zstd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "iac/platform.h"
#include "tests/batches.h"
#include "tests/frames.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

namespace {

// Decoders that say as much of a size as a test wants; the payload is "KIND COUNT BYTE".
class Told final : public Codec {
 public:
  explicit Told(SizeHint::Kind kind) : kind_(kind) {}
  std::string_view name() const override { return "told"; }
  std::string parameters() const override { return {}; }
  SizeHint decoded_size(Bytes payload) const override {
    const uint64_t size = load<uint32_t>(payload.data());
    if (kind_ == SizeHint::Kind::unknown) return {};
    return {kind_, kind_ == SizeHint::Kind::bound ? size * 3 + 100 : size};
  }
  // A failing payload spoils all the room it was given, as a decoder may that runs astray.
  std::optional<size_t> decode(Bytes payload, Target& target) const override {
    const uint64_t size = load<uint32_t>(payload.data());
    const auto value = static_cast<unsigned char>(payload[4]);
    if (value == 0xFF) {
      fill(target, 1 << 16, 0xEE);
      throw Error(Error::Kind::codec, "told: fails");
    }
    if (value == 0xFE) throw std::runtime_error("not an Error");
    if (!target.grow(size)) return std::nullopt;
    // Up to 32 bytes behind the output are written as well where there is room.
    fill(target, size + 32, 0xEE);
    fill(target, size, value);
    return size;
  }

 private:
  static void fill(Target& target, size_t most, int value) {
    if (target.capacity() > 0) std::memset(target.data(), value, std::min(target.capacity(), most));
  }

  SizeHint::Kind kind_;
};

std::string told(uint32_t size, unsigned char value, size_t padding = 0) {
  std::string text(5 + padding, '\0');
  std::memcpy(text.data(), &size, sizeof size);
  text[4] = static_cast<char>(value);
  return text;
}

const Told exact_size(SizeHint::Kind::exact), bound_size(SizeHint::Kind::bound),
    unknown_size(SizeHint::Kind::unknown);

}  // namespace

TEST_CASE("a batch of any sizes, told or not, is each record behind the other") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 150; ++round) {
    const size_t count = random() % 400;
    std::vector<std::string> payloads, expected;
    std::vector<const Codec*> codecs;
    for (size_t i = 0; i < count; ++i) {
      const auto size = static_cast<uint32_t>(
          random() % 3 == 0 ? 0 : random() % (random() % 8 == 0 ? 200000 : 500));
      // Rounds of one kind only, and of all, with failures or without.
      const auto value =
          static_cast<unsigned char>(round % 2 == 0 && random() % 9 == 0 ? 0xFF : i % 200);
      payloads.push_back(told(size, value, random() % 3000));
      const uint64_t kind = round % 7 < 3   ? static_cast<uint64_t>(round % 7)
                            : round % 7 < 5 ? (i > count / 2 ? random() % 3 : 0)
                                            : random() % 3;
      codecs.push_back(kind == 0 ? &exact_size : kind == 1 ? &bound_size : &unknown_size);
      expected.push_back(value == 0xFF ? "" : std::string(size, static_cast<char>(value)));
    }
    for (const unsigned workers : {1u, 2u, 0u}) {
      for (const size_t round_rows : {SIZE_MAX, size_t{37}}) {
        const Decoded found = decode_all(payloads, codecs, workers, OnError::null, {}, round_rows);
        REQUIRE(found.records == expected);
        size_t failed = 0;
        for (size_t i = 0; i < count; ++i) {
          const bool fails = static_cast<unsigned char>(payloads[i][4]) == 0xFF;
          REQUIRE(is_valid(found.batch, i) != fails);
          if (fails) REQUIRE(found.failures[failed++].position == i);
        }
        REQUIRE(found.failures.size() == failed);
      }
    }
  }
}

// The first record is decoded last, and spoils all the room that it was given.
class Astray final : public Codec {
 public:
  std::string_view name() const override { return "astray"; }
  std::string parameters() const override { return {}; }
  SizeHint decoded_size(Bytes) const override { return {SizeHint::Kind::exact, 1000}; }
  std::optional<size_t> decode(Bytes payload, Target& target) const override {
    if (payload[0] == std::byte{0}) {
      for (int i = 0; i < 2000 && others_ < 2; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      std::memset(target.data(), 0xEE, target.capacity());
      throw Error(Error::Kind::codec, "astray");
    }
    std::memset(target.data(), 'x', 1000);
    ++others_;
    return 1000;
  }

 private:
  mutable std::atomic<int> others_{0};
};

TEST_CASE("a decoder that runs astray spoils no record that another thread has decoded") {
  if (platform::usable_cpus() < 2) return;
  // So large that each is handed out by itself.
  std::vector<std::string> payloads(3, std::string(100000, '\1'));
  payloads[0][0] = '\0';
  const Astray codec;
  const Decoded found = decode_all(payloads, {&codec}, 2);
  CHECK(found.failures.size() == 1);
  CHECK(found.records ==
        std::vector<std::string>{"", std::string(1000, 'x'), std::string(1000, 'x')});
}

TEST_CASE("failures in the middle raise the first, leave nulls, or are skipped") {
  std::vector<std::string> payloads;
  for (unsigned char i = 0; i < 100; ++i)
    payloads.push_back(told(1000 + i, i == 40 || i == 70 ? 0xFF : i));
  for (const Codec* codec : {&exact_size, &bound_size, &unknown_size}) {
    for (const unsigned workers : {1u, 2u}) {
      CHECK_THROWS_AS(decode_all(payloads, {codec}, workers, OnError::raise), Error);
      const Decoded null = decode_all(payloads, {codec}, workers, OnError::null);
      CHECK(null.batch.count == 100);
      CHECK_FALSE(is_valid(null.batch, 40));
      CHECK(is_valid(null.batch, 41));
      CHECK(null.records[41] == std::string(1041, '\x29'));
      CHECK(null.records[40].empty());
      const Decoded skip = decode_all(payloads, {codec}, workers, OnError::skip);
      CHECK(skip.batch.count == 98);
      REQUIRE(skip.positions.size() == 98);
      CHECK((skip.positions[39] == 39 && skip.positions[40] == 41 && skip.positions[97] == 99));
      CHECK(skip.records[40] == std::string(1041, '\x29'));
      CHECK(skip.batch.validity.empty());
      CHECK(skip.failures.size() == 2);
    }
  }
}

TEST_CASE("rows that failed before are passed over") {
  BatchDecoder decoder({}, 1, 100);
  const std::vector<std::string> texts{told(3, 'a'), "", told(3, 'c')};
  std::vector<Bytes> payloads;
  for (const auto& text : texts) payloads.push_back(bytes_of(text));
  const std::vector<const Codec*> codecs{&exact_size, nullptr, &exact_size};
  Failures failures(3);
  failures.add(1, Error(Error::Kind::checksum, "before"));
  decoder.add(payloads, codecs, 0, failures);
  const Batch batch = decoder.finish(OnError::null, failures);
  CHECK(records_of(batch) == std::vector<std::string>{"aaa", "", "ccc"});
  CHECK(batch.failures.size() == 1);
}

TEST_CASE("a batch of nothing is empty") {
  const Decoded none = decode_all({}, {&exact_size}, 2);
  CHECK(none.batch.count == 0);
  CHECK(none.batch.offsets.size() == 8);
  std::vector<std::string> failing(50, told(10, 0xFF));
  for (const Codec* codec : {&exact_size, &bound_size, &unknown_size}) {
    CHECK(decode_all(failing, {codec}, 2).failures.size() == 50);
    CHECK(decode_all(failing, {codec}, 2, OnError::skip).batch.count == 0);
  }
}

TEST_CASE("a record above its limit fails alone") {
  DecodeLimits limits;
  limits.record_bytes = 1000;
  const std::vector<std::string> payloads{told(1000, 'a'), told(1001, 'b'), told(10, 'c')};
  for (const Codec* codec : {&exact_size, &bound_size, &unknown_size}) {
    const Decoded found = decode_all(payloads, {codec}, 2, OnError::null, limits);
    REQUIRE(found.failures.size() == 1);
    CHECK(found.failures[0].position == 1);
    CHECK(contains(found.failures[0].error.reason(), "larger than the limit of 1000 bytes"));
    CHECK(found.records[0].size() == 1000);
    CHECK(found.records[2] == "cccccccccc");
  }
}

TEST_CASE("a batch above its limit fails as a whole, and nobody waits for ever") {
  DecodeLimits limits;
  limits.batch_bytes = 100000;
  for (int round = 0; round < 100; ++round) {
    std::vector<std::string> payloads;
    for (int i = 0; i < 300; ++i) payloads.push_back(told(1000, 'x', 4000));
    for (const Codec* codec : {&exact_size, &bound_size, &unknown_size}) {
      const Thrown thrown = thrown_by([&] {
        decode_all(payloads, {codec}, 2, OnError::null, limits, round % 2 == 0 ? SIZE_MAX : 50);
      });
      CHECK(thrown.kind == Error::Kind::argument);
      CHECK(contains(thrown.text, "decoded batch is larger than the limit of 100000 bytes"));
    }
  }
  std::vector<std::string> fits;
  for (int i = 0; i < 100; ++i) fits.push_back(told(1000, 'x'));
  for (const Codec* codec : {&exact_size, &bound_size, &unknown_size}) {
    CHECK(decode_all(fits, {codec}, 2, OnError::raise, limits).records[99] ==
          std::string(1000, 'x'));
  }
}

TEST_CASE("an exception that is no Error ends the batch, and nobody waits for ever") {
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> payloads;
    for (int i = 0; i < 200; ++i) payloads.push_back(told(100, i == round ? 0xFE : 1, 4000));
    for (const Codec* codec : {&exact_size, &bound_size, &unknown_size}) {
      CHECK_THROWS_AS(decode_all(payloads, {codec}, 2), std::runtime_error);
    }
  }
}

TEST_CASE("records that shrink a thousandfold find room") {
  const auto brotli = make_codec("brotli", "{\"quality\": 3}");
  std::vector<std::string> payloads, objects;
  for (int i = 0; i < 120; ++i) {
    objects.push_back(
        std::string(static_cast<size_t>(i % 10 == 0 ? 700000 : 30000), static_cast<char>(i)));
    payloads.push_back(encoded(*brotli, objects.back()));
  }
  for (const unsigned workers : {1u, 2u}) {
    for (const size_t round_rows : {SIZE_MAX, size_t{11}}) {
      CHECK(decode_all(payloads, {brotli.get()}, workers, OnError::raise, {}, round_rows).records ==
            objects);
    }
  }
}

TEST_CASE("one and many workers give the same bytes for real payloads, whole or damaged") {
  std::mt19937_64 random(2);
  const auto zstd = make_codec("zstd", "{\"level\": 1}");
  const auto brotli = make_codec("brotli", "{\"quality\": 2}");
  const auto none = make_codec("none", "{}");
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> payloads;
    std::vector<const Codec*> codecs;
    for (int i = 0; i < 150; ++i) {
      const std::string object =
          std::string(random() % 5000, static_cast<char>(i)) + noise(random, random() % 5000);
      switch (round % 5 == 0 ? 0 : random() % 5) {
        case 0:
          payloads.push_back(encoded(*zstd, object));
          codecs.push_back(zstd.get());
          break;
        case 1:
          payloads.push_back(frame_without_size(object));
          codecs.push_back(zstd.get());
          break;
        case 2:
          payloads.push_back(encoded(*zstd, object) + frame_without_size("more"));
          codecs.push_back(zstd.get());
          break;
        case 3:
          payloads.push_back(encoded(*brotli, object));
          codecs.push_back(brotli.get());
          break;
        default:
          payloads.push_back(object);
          codecs.push_back(none.get());
          break;
      }
      if (random() % 10 == 0 && !payloads.back().empty()) {
        payloads.back()[random() % payloads.back().size()] ^= 0x10;
      }
    }
    const Decoded one = decode_all(payloads, codecs, 1);
    for (int again = 0; again < 3; ++again) {
      const Decoded many =
          decode_all(payloads, codecs, 2, OnError::null, {}, again == 2 ? 40 : SIZE_MAX);
      REQUIRE(many.records == one.records);
      REQUIRE(many.failures.size() == one.failures.size());
      for (size_t i = 0; i < one.failures.size(); ++i) {
        REQUIRE(many.failures[i].position == one.failures[i].position);
        REQUIRE(many.failures[i].error.reason() == one.failures[i].error.reason());
      }
    }
    // Each record by itself.
    for (size_t i = 0; i < payloads.size(); i += 7) {
      REQUIRE(decode_all({payloads[i]}, {codecs[i]}, 1).records[0] == one.records[i]);
    }
  }
}
