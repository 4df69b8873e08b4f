#include <catch2/catch.hpp>

#include "iac/layout.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

static Layout layout_of(const std::string& stream, uint64_t rows, const Header& header = {}) {
  return Layout(
      Table::open(std::make_shared<MemorySource>(stream), {0, stream.size()}, "index", rows),
      header);
}

static Layout layout_of(const std::vector<TestColumn>& columns, const Header& header = {}) {
  return layout_of(stream_of(columns), columns.front().rows(), header);
}

static std::string refusal(const std::vector<TestColumn>& columns, const Header& header = {}) {
  const Thrown thrown = thrown_by([&] { layout_of(columns, header); });
  CHECK(thrown.kind == Error::Kind::pack);
  return thrown.text;
}

static std::vector<Span> spans(const Layout& layout, const std::vector<int64_t>& rows) {
  return layout.spans(rows);
}

static TestColumn offsets(ArrowType type = NANOARROW_TYPE_UINT64) {
  return number_column("offset", type, std::vector<uint64_t>{0, 10, 5});
}
static TestColumn lengths(ArrowType type = NANOARROW_TYPE_UINT32) {
  return number_column("length", type, std::vector<uint64_t>{10, 7, 0});
}

TEST_CASE("spans come from the columns offset, length and crc32") {
  const Layout layout = layout_of(
      {lengths(),
       number_column("crc32", NANOARROW_TYPE_UINT32, std::vector<uint64_t>{1, 0xFFFFFFFF, 3}),
       offsets()});
  CHECK(layout.kind() == Layout::Kind::variable);
  CHECK(layout.has_crc32());
  CHECK_FALSE(layout.has_codec_ids());
  const auto found = spans(layout, {2, 1, 1, 0});
  REQUIRE(found.size() == 4);
  CHECK((found[0].offset == 5 && found[0].length == 0 && found[0].crc32 == 3));
  CHECK((found[1].offset == 10 && found[1].length == 7 && found[1].crc32 == 0xFFFFFFFF));
  CHECK((found[2].offset == 10 && found[3].offset == 0));
  CHECK(found[0].has_crc32);
}

TEST_CASE("signed layout columns read as well, and a missing crc32 leaves records unchecked") {
  const Layout layout = layout_of({offsets(NANOARROW_TYPE_INT64), lengths(NANOARROW_TYPE_INT32)});
  CHECK_FALSE(layout.has_crc32());
  const auto found = spans(layout, {1});
  CHECK((found[0].offset == 10 && found[0].length == 7 && !found[0].has_crc32));
}

TEST_CASE("layout columns of other types are refused by name and type") {
  for (const ArrowType type :
       {NANOARROW_TYPE_UINT32, NANOARROW_TYPE_DOUBLE, NANOARROW_TYPE_INT16}) {
    const std::string text = refusal({offsets(type), lengths()});
    CHECK(contains(text, std::string("column 'offset' has type ") + ArrowTypeString(type) +
                             ", expected uint64"));
  }
  CHECK(contains(refusal({offsets(), lengths(NANOARROW_TYPE_UINT16)}), "'length' has type uint16"));
  CHECK(contains(refusal({offsets(), lengths(NANOARROW_TYPE_UINT64)}), "'length' has type uint64"));
  TestColumn text{"offset", NANOARROW_TYPE_STRING, {}, {"a", "b", "c"}};
  CHECK(contains(refusal({text, lengths()}), "'offset' has type string"));
  CHECK(contains(
      refusal({offsets(), lengths(),
               number_column("crc32", NANOARROW_TYPE_UINT64, std::vector<uint64_t>{1, 2, 3})}),
      "'crc32' has type uint64"));
}

TEST_CASE("layout columns with nulls are refused") {
  for (const size_t column : {0, 1, 2}) {
    std::vector<TestColumn> columns{
        offsets(), lengths(),
        number_column("crc32", NANOARROW_TYPE_UINT32, std::vector<uint64_t>{1, 2, 3})};
    columns[column].numbers[1] = std::nullopt;
    CHECK(contains(refusal(columns), "column '" + columns[column].name + "' has nulls"));
  }
}

TEST_CASE("an offset column needs a length column, and two of a name are refused") {
  CHECK(contains(refusal({offsets()}), "no column 'length'"));
  CHECK(contains(refusal({offsets(), lengths(), offsets()}), "two columns are called 'offset'"));
}

TEST_CASE("without layout columns there are no records") {
  const Layout layout =
      layout_of({number_column("id", NANOARROW_TYPE_INT64, std::vector<uint64_t>{1})});
  CHECK(layout.kind() == Layout::Kind::none);
  CHECK(contains(thrown_by([&] { spans(layout, {0}); }).text, "no records"));
}

static Header matrix(uint64_t record_bytes) {
  Header header;
  header.fixed = FixedShape{4, "float32", record_bytes};
  return header;
}

TEST_CASE("fixed records follow from their row") {
  const Layout layout = layout_of(
      {number_column("id", NANOARROW_TYPE_INT64, std::vector<uint64_t>{1, 2})}, matrix(16));
  CHECK(layout.kind() == Layout::Kind::fixed);
  const auto found = spans(layout, {1, 0});
  CHECK((found[0].offset == 16 && found[0].length == 16 && !found[0].has_crc32));
  CHECK((found[1].offset == 0 && found[1].length == 16));
}

TEST_CASE("a matrix may have a column called offset of its own") {
  CHECK(layout_of({offsets()}, matrix(16)).kind() == Layout::Kind::fixed);
  CHECK(layout_of({offsets(), lengths()}, matrix(16)).kind() == Layout::Kind::variable);
}

TEST_CASE("a matrix too large for 64 bits lies past any data") {
  const Layout layout =
      layout_of({number_column("id", NANOARROW_TYPE_INT64, std::vector<uint64_t>{1, 2, 3})},
                matrix(uint64_t{1} << 63));
  CHECK(spans(layout, {2})[0].offset == UINT64_MAX);
}

TEST_CASE("each record may name its codec") {
  Header header;
  header.record_codecs = {{5, {"zstd", "{}"}}, {200, {"none", "{}"}}};
  for (const ArrowType type : {NANOARROW_TYPE_UINT8, NANOARROW_TYPE_UINT16, NANOARROW_TYPE_INT32,
                               NANOARROW_TYPE_INT64, NANOARROW_TYPE_UINT64}) {
    const Layout layout = layout_of(
        {offsets(), lengths(), number_column("codec_id", type, std::vector<uint64_t>{200, 5, 6})},
        header);
    CHECK(layout.has_codec_ids());
    const auto found = spans(layout, {0, 1, 2});
    CHECK((found[0].codec == 1 && found[1].codec == 0 && found[2].codec == 255));
  }
  CHECK_FALSE(layout_of({offsets(), lengths()}, header).has_codec_ids());
  TestColumn ids = number_column("codec_id", NANOARROW_TYPE_UINT8, std::vector<uint64_t>{5, 5, 5});
  CHECK_FALSE(layout_of({offsets(), lengths(), ids}).has_codec_ids());
  ids.numbers[0] = std::nullopt;
  CHECK(contains(refusal({offsets(), lengths(), ids}, header), "'codec_id' has nulls"));
  ids = number_column("codec_id", NANOARROW_TYPE_DOUBLE, std::vector<uint64_t>{5, 5, 5});
  CHECK(contains(refusal({offsets(), lengths(), ids}, header), "'codec_id' has type"));
  header.record_codecs.resize(255);
  ids = number_column("codec_id", NANOARROW_TYPE_UINT8, std::vector<uint64_t>{0, 0, 0});
  CHECK(contains(refusal({offsets(), lengths(), ids}, header), "254"));
}

TEST_CASE("spans of many rows in many batches are those of the columns") {
  std::mt19937_64 random(1);
  TestIndex index;
  for (uint64_t i = 0; i < 5000; ++i)
    index.add(random(), random() & 0xFFFFFFFF, random() & 0xFFFFFFFF);
  for (const size_t batch_rows :
       {size_t{5000}, size_t{7}, size_t{1000}, size_t{1024}, size_t{1025}}) {
    const Layout layout = layout_of(stream_of(index.columns(), batch_rows), 5000);
    for (int round = 0; round < 5; ++round) {
      std::vector<int64_t> rows(round == 0 ? 5000 : random() % 50);
      for (size_t i = 0; i < rows.size(); ++i) {
        rows[i] =
            round == 0 ? 4999 - static_cast<int64_t>(i) : static_cast<int64_t>(random() % 5000);
      }
      const auto found = spans(layout, rows);
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto row = static_cast<size_t>(rows[i]);
        REQUIRE(found[i].offset == index.offsets[row]);
        REQUIRE(found[i].length == index.lengths[row]);
        REQUIRE(found[i].crc32 == index.crc32s[row]);
      }
    }
  }
}

TEST_CASE("a few rows of a large index are read without the rest, once") {
  TestIndex index;
  for (uint64_t i = 0; i < 20000; ++i) index.add(i, 1, i);
  const std::string stream = stream_of(index.columns());
  auto source = std::make_shared<FaultySource>(stream, ReadFaults{});
  const Layout layout(Table::open(source, {0, stream.size()}, "index", 20000), {});
  const uint64_t before = source->calls;
  CHECK(spans(layout, {15000, 3, 15001})[0].offset == 15000);
  CHECK(source->calls - before == 6);  // three columns of two blocks
  CHECK(spans(layout, {15010, 4})[0].offset == 15010);
  CHECK(source->calls - before == 6);
  source->faults.bad_to = stream.size();
  CHECK(thrown_by([&] { spans(layout, {9000}); }).code == EIO);
  CHECK(spans(layout, {15000})[0].offset == 15000);
}
