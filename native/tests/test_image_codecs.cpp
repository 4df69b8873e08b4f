#include <catch2/catch.hpp>
#include <thread>

#include "tests/batches.h"
#include "tests/images.h"

using namespace iac;
using namespace iac::tests;

namespace {

// Damaged headers claim any size.
const DecodeLimits few_samples{.image_samples = 1 << 20};

// The image of one payload, decoded to just enough room; empty when it is damaged.
std::string decoded_alone(const Codec& codec, const std::string& payload) {
  try {
    const SizeHint hint = codec.decoded_size(bytes_of(payload));
    if (hint.image.samples() > few_samples.image_samples) return "";
    std::string memory(hint.bytes, '\xA5');
    Target target(reinterpret_cast<std::byte*>(memory.data()), memory.size());
    return codec.decode(bytes_of(payload), target).has_value() ? memory : "";
  } catch (const Error&) {
    return "";
  }
}

// What a request is made of, and what it must give.
struct Request {
  std::vector<std::string> payloads, expected;
  std::vector<const Codec*> codecs;

  void add(const Codec& codec, std::string payload) {
    codecs.push_back(&codec);
    payloads.push_back(std::move(payload));
  }
};

// Images of all codecs, some of them damaged, and some bytes.
Request mixed_request(const std::vector<ImageSample>& samples, const Codec& bytes, size_t count,
                      std::mt19937_64& random) {
  Request request;
  while (request.payloads.size() < count) {
    if (random() % 8 == 0) {
      request.add(bytes, encoded(bytes, std::string(random() % 3000, 'b')));
      continue;
    }
    const ImageSample& sample = samples[random() % samples.size()];
    std::string payload = sample.payload;
    if (random() % 10 == 0) payload.resize(random() % payload.size());
    if (random() % 10 == 0 && !payload.empty()) payload[random() % payload.size()] ^= 0x24;
    request.add(*sample.kind->codec, std::move(payload));
  }
  return request;
}

void require_same(const Batch& found, const Batch& expected) {
  REQUIRE(records_of(found) == records_of(expected));
  REQUIRE(found.validity == expected.validity);
  REQUIRE(found.failures.size() == expected.failures.size());
  for (size_t i = 0; i < found.failures.size(); ++i) {
    REQUIRE(found.failures[i].position == expected.failures[i].position);
    REQUIRE(std::string(found.failures[i].error.what()) == expected.failures[i].error.what());
  }
  REQUIRE(found.images.size() == found.count);
  for (size_t i = 0; i < found.count; ++i) {
    if (is_valid(found, i)) REQUIRE(found.images[i] == expected.images[i]);
  }
}

}  // namespace

TEST_CASE("image codecs decode what they encoded, exactly where they are lossless") {
  const auto kinds = image_kinds();
  std::mt19937_64 random(1);
  for (int round = 0; round < 5; ++round) {
    for (const ImageSample& sample : image_samples(kinds, random)) {
      INFO(sample.kind->text() << " " << describe(sample.shape));
      const Codec& codec = *sample.kind->codec;
      const SizeHint hint = codec.decoded_size(bytes_of(sample.payload));
      REQUIRE(hint.kind == SizeHint::Kind::exact);
      REQUIRE(hint.image == sample.shape);
      REQUIRE(hint.bytes == sample.shape.bytes());
      const std::string image = decoded_alone(codec, sample.payload);
      REQUIRE(image.size() == sample.pixels.size());
      if (sample.kind->is_lossless) REQUIRE(image == sample.pixels);
    }
  }
}

TEST_CASE("an image is decoded into its place and no further, at even and odd addresses") {
  const auto kinds = image_kinds();
  std::mt19937_64 random(2);
  for (const ImageSample& sample : image_samples(kinds, random)) {
    INFO(sample.kind->text() << " " << describe(sample.shape));
    const std::string expected = decoded_alone(*sample.kind->codec, sample.payload);
    const size_t size = expected.size();
    for (const size_t before : {64u, 65u}) {
      for (const size_t spare : {0u, 1000u}) {
        std::string memory(before + size + spare + 64, '\x5A');
        Target target(reinterpret_cast<std::byte*>(memory.data()) + before, size + spare);
        REQUIRE(sample.kind->codec->decode(bytes_of(sample.payload), target) == size);
        REQUIRE(memory.substr(before, size) == expected);
        REQUIRE(memory.substr(0, before) == std::string(before, '\x5A'));
        REQUIRE(memory.substr(before + size) == std::string(spare + 64, '\x5A'));
      }
    }
    std::string memory(size, '\x5A');
    Target target(reinterpret_cast<std::byte*>(memory.data()), size - 1);
    REQUIRE_FALSE(sample.kind->codec->decode(bytes_of(sample.payload), target).has_value());
    REQUIRE(memory == std::string(size, '\x5A'));
  }
}

TEST_CASE("one and many workers give the same images, whole or damaged, and bytes between them") {
  const auto kinds = image_kinds();
  const auto bytes = make_codec("zstd", "{\"level\": 1}");
  std::mt19937_64 random(3);
  for (int round = 0; round < 4; ++round) {
    const auto samples = image_samples(kinds, random);
    const Request request = mixed_request(samples, *bytes, 200, random);
    const Decoded one = decode_all(request.payloads, request.codecs, 1, OnError::null, few_samples);
    REQUIRE_FALSE(one.failures.empty());
    for (size_t i = 0; i < request.payloads.size(); ++i) {
      if (request.codecs[i] == bytes.get()) continue;
      INFO(request.codecs[i]->name() << " " << i);
      REQUIRE(one.records[i] == decoded_alone(*request.codecs[i], request.payloads[i]));
    }
    for (const unsigned workers : {2u, 0u}) {
      for (const size_t round_rows : {SIZE_MAX, size_t{37}}) {
        const Decoded many =
            decode_all(request.payloads, request.codecs, workers, OnError::null, {}, round_rows);
        require_same(many.batch, one.batch);
      }
    }
  }
}

TEST_CASE("any number of callers decode and encode at once") {
  const auto kinds = image_kinds();
  const auto bytes = make_codec("zstd", "{\"level\": 1}");
  std::mt19937_64 random(4);
  const auto samples = image_samples(kinds, random, 90);
  const Request request = mixed_request(samples, *bytes, 60, random);
  const Decoded one = decode_all(request.payloads, request.codecs, 1, OnError::null, few_samples);
  std::vector<std::string> wrong(6);
  std::vector<std::thread> callers;
  for (std::string& said : wrong) {
    callers.emplace_back([&] {
      for (int round = 0; round < 3; ++round) {
        const Decoded found =
            decode_all(request.payloads, request.codecs, 2, OnError::null, few_samples);
        if (found.records != one.records) said += " a batch";
        for (const ImageSample& sample : samples) {
          const std::string payload = encoded(*sample.kind->codec, sample.shape, sample.pixels);
          if (payload != sample.payload) said += " " + sample.kind->text();
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == std::vector<std::string>(6));
}

TEST_CASE("an image above the limit of samples fails alone, before it is decoded") {
  const auto kinds = image_kinds();
  std::mt19937_64 random(5);
  for (const ImageKind& kind : kinds) {
    INFO(kind.text());
    const uint32_t channels = kind.channels.back();
    std::vector<std::string> payloads;
    for (const uint32_t height : {20u, 21u, 19u}) {
      const ImageShape shape{height, 30, channels, kind.types.front()};
      payloads.push_back(encoded(*kind.codec, shape, pixels_of(shape, random)));
    }
    DecodeLimits limits;
    limits.image_samples = uint64_t{20} * 30 * channels;
    const Decoded found = decode_all(payloads, {kind.codec.get()}, 2, OnError::null, limits);
    REQUIRE(found.failures.size() == 1);
    CHECK(found.failures[0].position == 1);
    CHECK(contains(found.failures[0].error.reason(), "is larger than the limit of " +
                                                         std::to_string(limits.image_samples) +
                                                         " samples, raise max_samples"));
    CHECK(found.records[1].empty());
    CHECK(found.records[2].size() == found.batch.images[2].bytes());
  }
}

TEST_CASE("images that fail in the middle raise, are null, or are skipped with their shapes") {
  const auto kinds = image_kinds();
  std::mt19937_64 random(6);
  const auto samples = image_samples(kinds, random);
  Request request;
  for (size_t i = 0; i < 90; ++i) {
    const ImageSample& sample = samples[i % samples.size()];
    // What has no header, and what breaks off behind it.
    const std::string& whole = sample.payload;
    request.add(*sample.kind->codec, i == 30   ? "junk"
                                     : i == 31 ? whole.substr(0, whole.size() * 9 / 10)
                                               : whole);
  }
  for (const unsigned workers : {1u, 2u}) {
    CHECK_THROWS_AS(decode_all(request.payloads, request.codecs, workers, OnError::raise), Error);
    const Decoded null = decode_all(request.payloads, request.codecs, workers, OnError::null);
    const Decoded skip = decode_all(request.payloads, request.codecs, workers, OnError::skip);
    REQUIRE((null.batch.count == 90 && null.batch.images.size() == 90));
    REQUIRE((skip.batch.count == 88 && skip.batch.images.size() == 88));
    REQUIRE((null.failures.size() == 2 && skip.failures.size() == 2));
    for (size_t i = 0; i < 90; ++i) {
      if (i == 30 || i == 31) {
        CHECK_FALSE(is_valid(null.batch, i));
        CHECK(null.records[i].empty());
        continue;
      }
      const size_t at = i < 30 ? i : i - 2;
      CHECK(skip.positions[at] == static_cast<int64_t>(i));
      CHECK(null.batch.images[i] == samples[i % samples.size()].shape);
      CHECK(skip.batch.images[at] == null.batch.images[i]);
      CHECK(skip.records[at] == null.records[i]);
    }
  }
}

TEST_CASE("image payloads cut anywhere are errors of the codec") {
  const auto kinds = image_kinds();
  std::mt19937_64 random(7);
  for (const ImageSample& sample : image_samples(kinds, random, 24)) {
    const size_t step = 1 + sample.payload.size() / 60;
    for (size_t size = random() % step; size < sample.payload.size(); size += step) {
      INFO(sample.kind->text() << " " << describe(sample.shape) << " cut to " << size << " of "
                               << sample.payload.size());
      const std::string cut = sample.payload.substr(0, size);
      const Thrown thrown = thrown_by([&] {
        std::string memory(sample.pixels.size(), '\0');
        Target target(reinterpret_cast<std::byte*>(memory.data()), memory.size());
        sample.kind->codec->decode(bytes_of(cut), target);
      });
      REQUIRE(thrown.any);
      REQUIRE(thrown.kind == Error::Kind::codec);
    }
  }
}
