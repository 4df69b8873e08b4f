#include <catch2/catch.hpp>
#include <thread>

#include "iac/pack.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

namespace {

Batch read(const Pack& pack, const std::vector<int64_t>& rows, OnError rule = OnError::raise,
           bool decode = true, bool verify = true) {
  ReadOptions options;
  options.on_error = rule;
  options.decode = decode;
  options.verify = verify;
  return pack.read(rows, options);
}

std::string refusal(const std::string& bytes) {
  const Thrown thrown = thrown_by([&] { open_bytes(bytes); });
  CHECK(thrown.kind == Error::Kind::pack);
  CHECK(thrown.text.starts_with("test.iac: "));
  return thrown.text;
}

}  // namespace

TEST_CASE("rows come in the order asked for, duplicates included") {
  const auto pack = open_bytes(parts_of({"zero", "", "two"}).bytes());
  CHECK(pack->num_records() == 3);
  const Batch batch = read(*pack, {2, 0, 1, 2});
  CHECK(records_of(batch) == std::vector<std::string>{"two", "zero", "", "two"});
  CHECK(batch.validity.empty());
  CHECK(batch.unchecked == 0);
  CHECK(read(*pack, {}).count == 0);
}

TEST_CASE("a batch outlives its pack") {
  Batch batch;
  {
    batch = read(*open_bytes(parts_of({"zero", "one"}).bytes()), {1});
  }
  CHECK(record_of(batch, 0) == "one");
}

TEST_CASE("each codec decodes, and stored bytes are had as they are") {
  for (const char* name : {"none", "zstd", "brotli"}) {
    const auto codec = make_codec(name, "{}");
    const std::vector<std::string> objects{std::string(100000, 'a'), "short",
                                           std::string(300, 'b')};
    std::vector<std::string> stored;
    for (const auto& object : objects) stored.push_back(encoded(*codec, object));
    const auto pack =
        open_bytes(parts_of(stored, "{\"codec\": \"" + std::string(name) + "\"}").bytes());
    CHECK(records_of(read(*pack, {0, 1, 2})) == objects);
    CHECK(records_of(read(*pack, {0, 1, 2}, OnError::raise, false)) == stored);
  }
}

TEST_CASE("a row that is not there is an index error of that row") {
  const auto pack = open_bytes(parts_of({"zero", "one"}).bytes());
  for (const int64_t row : {int64_t{2}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    const Thrown thrown = thrown_by([&] { read(*pack, {0, row}); });
    CHECK(thrown.kind == Error::Kind::index);
    CHECK(contains(thrown.text, "payload row out of range: " + std::to_string(row) +
                                    ", the pack has 2 records"));
    const std::vector<int64_t> rows{row};
    CHECK(thrown_by([&] { pack->stamps(rows); }).kind == Error::Kind::index);
    CHECK(thrown_by([&] { pack->locate(rows); }).kind == Error::Kind::index);
  }
  const Batch batch = read(*pack, {1, 5, 0}, OnError::null);
  CHECK(records_of(batch) == std::vector<std::string>{"one", "", "zero"});
  CHECK_FALSE(is_valid(batch, 1));
  CHECK(batch.failures[0].error.pack() == "test.iac");
  const auto empty = open_bytes(parts_of({}).bytes());
  CHECK(thrown_by([&] { read(*empty, {0}); }).kind == Error::Kind::index);
  CHECK(read(*empty, {0, 1}, OnError::skip).count == 0);
}

TEST_CASE("a bad offset or length spoils only its row") {
  PackParts parts = parts_of({"zero", "one", "two"});
  const uint64_t size = parts.data.size();
  for (const auto& [offset, length] : {std::pair{size, uint64_t{1}},
                                       {uint64_t{0}, size + 1},
                                       {UINT64_MAX, uint64_t{0}},
                                       {UINT64_MAX, uint64_t{1}},
                                       {uint64_t{1} << 63, uint64_t{4}},
                                       {uint64_t{1}, uint64_t{0xFFFFFFFF}}}) {
    TestIndex index;
    index.add(0, 4, crc32(bytes_of("zero")));
    index.add(offset, length, 0);
    index.add(7, 3, crc32(bytes_of("two")));
    parts.index = stream_of(index.columns());
    const auto pack = open_bytes(parts.bytes());
    CHECK(records_of(read(*pack, {0, 2})) == std::vector<std::string>{"zero", "two"});
    const Thrown thrown = thrown_by([&] { read(*pack, {2, 1, 0}); });
    CHECK(thrown.row == 1);
    CHECK(contains(thrown.text, "test.iac: row 1: payload span outside the data segment: offset " +
                                    std::to_string(offset)));
    const Batch batch = read(*pack, {0, 1, 2}, OnError::skip);
    CHECK(records_of(batch) == std::vector<std::string>{"zero", "two"});
    CHECK(batch.positions == std::vector<int64_t>{0, 2});
  }
}

TEST_CASE("overlaps, gaps, any order and nothing at the end are legal") {
  PackParts parts;
  parts.data = "abcdefgh";
  TestIndex index;
  for (const auto& [offset, length] : {std::pair{4, 4}, {0, 8}, {2, 1}, {8, 0}, {0, 8}}) {
    index.add(static_cast<uint64_t>(offset), static_cast<uint64_t>(length),
              crc32(bytes_of(parts.data)
                        .subspan(static_cast<size_t>(offset), static_cast<size_t>(length))));
  }
  parts.index = stream_of(index.columns(), 2);
  parts.num_records = 5;
  const auto pack = open_bytes(parts.bytes());
  CHECK(records_of(read(*pack, {0, 1, 2, 3, 4})) ==
        std::vector<std::string>{"efgh", "abcdefgh", "c", "", "abcdefgh"});
  CHECK(records_of(read(*open_bytes(parts.bytes() + "trailing"), {0})) ==
        std::vector<std::string>{"efgh"});
}

TEST_CASE("damage is found by crc32 where there is one, and counted where there is none") {
  PackParts parts = parts_of({"zero", "one", "two"});
  parts.data[5] ^= 1;
  const auto pack = open_bytes(parts.bytes());
  const Thrown thrown = thrown_by([&] { read(*pack, {0, 1}); });
  CHECK(thrown.kind == Error::Kind::checksum);
  CHECK(thrown.row == 1);
  const Batch unchecked = read(*pack, {0, 1}, OnError::raise, true, false);
  CHECK(unchecked.unchecked == 2);

  TestIndex index;
  index.offsets = {0, 4, 7};
  index.lengths = {4, 3, 3};
  parts.index = stream_of(index.columns());
  const auto without = open_bytes(parts.bytes());
  CHECK(read(*without, {0, 1, 2}).unchecked == 3);
}

TEST_CASE("each record is decoded by its own codec") {
  const auto zstd = make_codec("zstd", "{}"), brotli = make_codec("brotli", "{}");
  const std::string object(2000, 'o');
  const std::string header = R"({"codec": "none", "record_codecs": [
    {"id": 1, "name": "zstd", "params": {"level": 3}}, {"id": 2, "name": "brotli"},
    {"id": 3, "name": "none"}, {"id": 4, "name": "later"}]})";
  const auto pack =
      open_bytes(parts_of({encoded(*zstd, object), encoded(*brotli, object), object, "?", "?"},
                          header, SIZE_MAX, {1, 2, 3, 4, 9})
                     .bytes());
  CHECK(records_of(read(*pack, {2, 1, 0, 1})) == std::vector<std::string>(4, object));
  const Thrown later = thrown_by([&] { read(*pack, {0, 3}); });
  CHECK(later.kind == Error::Kind::codec);
  CHECK(later.row == 3);
  CHECK(contains(later.text, "unknown codec: 'later'"));
  CHECK(contains(thrown_by([&] { read(*pack, {4}); }).text,
                 "codec_id is not in the header's record_codecs"));
  CHECK(records_of(read(*pack, {0, 3, 4, 2}, OnError::skip)) ==
        std::vector<std::string>(2, object));
  CHECK(record_of(read(*pack, {3}, OnError::raise, false), 0) == "?");

  // Without the column every record has the pack's codec.
  const auto plain = open_bytes(parts_of({"stored"}, header).bytes());
  CHECK(record_of(read(*plain, {0}), 0) == "stored");
}

TEST_CASE("a codec that this build lacks is an error of the row that needs it") {
  for (const char* codec : {"\"later\"", "null", "7", "[\"zstd\"]"}) {
    const auto pack =
        open_bytes(parts_of({"a", "b"}, "{\"codec\": " + std::string(codec) + "}").bytes());
    const Thrown thrown = thrown_by([&] { read(*pack, {1}); });
    CHECK(thrown.kind == Error::Kind::codec);
    CHECK(contains(thrown.text, "test.iac: row 1: unknown codec"));
    CHECK(record_of(read(*pack, {1}, OnError::raise, false), 0) == "b");
    CHECK(read(*pack, {0, 1}, OnError::null).failures.size() == 2);
  }
}

TEST_CASE("records that do not decode fail by row") {
  const auto zstd = make_codec("zstd", "{}");
  const auto pack =
      open_bytes(parts_of({encoded(*zstd, "good"), "junk", "", encoded(*zstd, "also good")},
                          "{\"codec\": \"zstd\"}")
                     .bytes());
  CHECK(thrown_by([&] { read(*pack, {0, 2, 1}); }).row == 2);
  const Batch batch = read(*pack, {3, 1, 2, 0}, OnError::null);
  CHECK(records_of(batch) == std::vector<std::string>{"also good", "", "", "good"});
  REQUIRE(batch.failures.size() == 2);
  CHECK(batch.failures[0].error.row() == 1);
  CHECK(batch.failures[1].error.row() == 2);
}

TEST_CASE("fixed records are read by row and end with the data") {
  PackParts parts;
  parts.header = R"({"feature_dim": 2, "feature_record_bytes": 4, "dtype": "float16"})";
  parts.index = stream_of({number_column("offset", NANOARROW_TYPE_INT64, std::vector{7u, 8u, 9u})});
  parts.data = "aaaabbbbcc";  // the third is cut
  parts.num_records = 3;
  const auto pack = open_bytes(parts.bytes());
  CHECK(pack->layout().kind() == Layout::Kind::fixed);
  const Batch batch = read(*pack, {1, 0, 1});
  CHECK(records_of(batch) == std::vector<std::string>{"bbbb", "aaaa", "bbbb"});
  CHECK(batch.unchecked == 3);
  CHECK(thrown_by([&] { read(*pack, {2}); }).row == 2);
}

TEST_CASE("stamps are the crc32 of the record, or of header and tables together") {
  const auto pack = open_bytes(parts_of({"zero", "one"}).bytes());
  const std::vector<int64_t> rows{1, 0};
  CHECK(pack->stamps(rows) ==
        std::vector<uint32_t>{crc32(bytes_of("one")), crc32(bytes_of("zero"))});
  PackParts parts;
  parts.index = stream_of({number_column("id", NANOARROW_TYPE_INT64, std::vector{1u, 2u})});
  parts.num_records = 2;
  const auto opaque = open_bytes(parts.bytes());
  const auto stamps = opaque->stamps(rows);
  CHECK(stamps[0] == stamps[1]);
  CHECK(opaque->stamps(rows) == stamps);
  CHECK(open_bytes(parts.bytes())->stamps(rows) == stamps);
  parts.index = stream_of({number_column("id", NANOARROW_TYPE_INT64, std::vector{2u, 1u})});
  const auto reordered = open_bytes(parts.bytes());
  CHECK(reordered->header().text == opaque->header().text);
  CHECK(reordered->stamps(rows) != stamps);
}

TEST_CASE("spans of the data segment are bounds-checked") {
  const auto pack = open_bytes(parts_of({"zero", "one"}).bytes());
  std::string out(3, '?');
  pack->read_data({4, 3}, std::as_writable_bytes(std::span(out)));
  CHECK(out == "one");
  CHECK_NOTHROW(pack->read_data({7, 0}, {}));
  for (const Segment span : {Segment{5, 3}, {8, 0}, {UINT64_MAX, 3}, {0, UINT64_MAX}}) {
    CHECK(contains(thrown_by([&] { pack->read_data(span, {}); }).text, "outside data segment"));
  }
}

TEST_CASE("a pack whose tables do not fit its header does not open") {
  const PackParts good = parts_of({"zero", "one"});
  PackParts parts = good;
  parts.num_records = 3;
  CHECK(contains(refusal(parts.bytes()), "index table: has 2 rows, the header says 3"));
  parts = good;
  parts.num_slides = 0;
  CHECK(contains(refusal(parts.bytes()), "slide table: has 1 rows, the header says 0"));
  parts = good;
  parts.slides.clear();
  CHECK(contains(refusal(parts.bytes()), "segment holds no Arrow stream"));
  parts = good;
  parts.index = "ARROW1\0\0" + parts.index;
  CHECK(contains(refusal(parts.bytes()), "index table:"));
  parts = good;
  parts.slides += 'x';  // an odd length shifts what follows
  CHECK(records_of(read(*open_bytes(parts.bytes()), {1})) == std::vector<std::string>{"one"});
}

TEST_CASE("a pack cut anywhere does not open") {
  const std::string bytes = parts_of({"zero", "one"}).bytes();
  for (size_t size = 0; size < bytes.size(); size += size < 65000 ? 4999 : 1) {
    REQUIRE(thrown_by([&] { open_bytes(bytes.substr(0, size)); }).any);
  }
}

TEST_CASE("limits of the batch hold for stored and decoded bytes") {
  const auto zstd = make_codec("zstd", "{}");
  const auto pack = open_bytes(
      parts_of({encoded(*zstd, std::string(1 << 20, 'x')), "y"}, "{\"codec\": \"zstd\"}").bytes());
  const std::vector<int64_t> rows{0};
  ReadOptions options;
  options.limits.batch_bytes = 1000;
  CHECK(contains(thrown_by([&] { pack->read(rows, options); }).text, "max_batch_bytes"));
  options.limits.batch_bytes = 10;
  options.decode = false;
  CHECK(contains(thrown_by([&] { pack->read(rows, options); }).text, "max_batch_bytes"));
  options.decode = true;
  options.limits.batch_bytes = 0;
  options.limits.record_bytes = 1000;
  const Thrown thrown = thrown_by([&] { pack->read(rows, options); });
  CHECK(thrown.row == 0);
  CHECK(contains(thrown.text, "max_record_bytes"));
}

TEST_CASE("a pack truncated while it is open gives errors, of the rows that are gone") {
  const Folder folder;
  std::mt19937_64 random(1);
  std::vector<std::string> stored;
  for (int i = 0; i < 3000; ++i) stored.push_back(noise(random, 100));
  const PackParts parts = parts_of(stored);
  const std::string bytes = parts.bytes();
  write_file(folder / "pack.iac", bytes);
  const auto pack = Pack::open(folder / "pack.iac");
  CHECK(record_of(read(*pack, {2999}), 0) == stored[2999]);
  fs::resize_file(folder / "pack.iac", bytes.size() - 150);
  const Batch batch = read(*pack, {2997, 2998, 2999, 2900}, OnError::null);
  CHECK(record_of(batch, 0) == stored[2997]);
  CHECK(record_of(batch, 3) == stored[2900]);
  REQUIRE(batch.failures.size() == 2);
  CHECK(contains(batch.failures[1].error.what(), "row 2999: file ends at byte"));
  // The index is gone too, where it was not read yet.
  fs::resize_file(folder / "pack.iac", header_bytes + 1000);
  CHECK(contains(thrown_by([&] { read(*pack, {1}); }).text, "file ends at byte"));
  CHECK(contains(thrown_by([&] { Pack::open(folder / "pack.iac"); }).text, "outside the file"));
}

TEST_CASE("a pack replaced while it is open keeps its bytes") {
  const Folder folder;
  write_file(folder / "pack.iac", parts_of({"old zero", "old one"}).bytes());
  const auto pack = Pack::open(folder / "pack.iac");
  write_file(folder / "next.iac", parts_of({"new", "newer", "newest"}).bytes());
  fs::rename(folder / "next.iac", folder / "pack.iac");
  CHECK(records_of(read(*pack, {1, 0})) == std::vector<std::string>{"old one", "old zero"});
  CHECK(records_of(read(*Pack::open(folder / "pack.iac"), {1})) ==
        std::vector<std::string>{"newer"});
}

TEST_CASE("a missing pack is not found, by its path") {
  const Thrown thrown = thrown_by([] { Pack::open("/nowhere/pack.iac"); });
  CHECK(thrown.kind == Error::Kind::not_found);
  CHECK(contains(thrown.text, "/nowhere/pack.iac: cannot open"));
}

TEST_CASE("many threads read one pack") {
  const auto zstd = make_codec("zstd", "{}");
  std::vector<std::string> stored, objects;
  for (int i = 0; i < 2000; ++i) {
    objects.push_back("object " + std::to_string(i));
    stored.push_back(encoded(*zstd, objects.back()));
  }
  const auto pack = open_bytes(parts_of(stored, "{\"codec\": \"zstd\"}", 300).bytes());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 30; ++i) {
        std::vector<int64_t> rows(random() % 100);
        for (auto& row : rows) row = static_cast<int64_t>(random() % 2000);
        const Batch batch = read(*pack, rows);
        for (size_t r = 0; r < rows.size(); ++r) {
          if (record_of(batch, r) != objects[static_cast<size_t>(rows[r])]) ++wrong;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a damaged pack is an error or reads, and never more") {
  std::mt19937_64 random(7);
  const auto zstd = make_codec("zstd", "{}");
  std::vector<std::string> stored;
  for (int i = 0; i < 20; ++i) stored.push_back(encoded(*zstd, noise(random, 50)));
  const PackParts parts = parts_of(stored, "{\"codec\": \"zstd\"}");
  const std::string bytes = parts.bytes();
  const size_t json_end = bytes.find("}", 16) + 1;
  const std::vector<int64_t> rows{0, 5, 19};
  for (int i = 0; i < 3000; ++i) {
    std::string bad = bytes;
    // In the header's text or anywhere in the segments, not in its padding.
    const size_t at =
        i % 3 == 0 ? random() % json_end : header_bytes + random() % (bytes.size() - header_bytes);
    bad[at] = static_cast<char>(i % 2 == 0 ? random() : bad[at] ^ (1 << random() % 8));
    try {
      const auto pack = open_bytes(bad);
      for (const bool verify : {true, false}) {
        ReadOptions options;
        options.verify = verify;
        options.on_error = OnError::null;
        pack->read(rows, options);
      }
      for (size_t column = 0; column < pack->index()->num_columns(); ++column)
        pack->index()->column(column, 0);
    } catch (const Error& error) {
      REQUIRE(contains(error.what(), ": "));
    }
  }
}
