#include <catch2/catch.hpp>
#include <thread>

#include "iac/table.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

static std::shared_ptr<const Table> open_table(const std::string& stream, uint64_t rows) {
  return Table::open(std::make_shared<MemorySource>(stream), {0, stream.size()}, "index", rows);
}

static std::shared_ptr<const Table> kept_table(const std::string& name, uint64_t rows) {
  return open_table(kept_stream(name), rows);
}

static size_t column_of(const Table& table, std::string_view name) {
  return table.find(name).value();
}

static int64_t number_at(const Column& column, int64_t row) {
  return ArrowArrayViewGetIntUnsafe(&column.view(), row);
}

static std::string string_at(const ArrowArrayView& view, int64_t row) {
  const ArrowStringView text = ArrowArrayViewGetStringUnsafe(&view, row);
  return {text.data, static_cast<size_t>(text.size_bytes)};
}

// Every value of a dictionary-encoded column of text.
static std::vector<std::string> decoded(const ArrowArrayView& view) {
  std::vector<std::string> all;
  for (int64_t i = 0; i < view.length; ++i) {
    if (ArrowArrayViewIsNull(&view, i)) {
      all.push_back("null");
    } else {
      all.push_back(string_at(*view.dictionary, ArrowArrayViewGetIntUnsafe(&view, i)));
    }
  }
  return all;
}

// Reads every column of every batch and hands each through the C data interface.
static void walk(const Table& table) {
  for (size_t batch = 0; batch < table.num_batches(); ++batch) {
    for (size_t column = 0; column < table.num_columns(); ++column) table.column(column, batch);
  }
  std::vector<size_t> columns(table.num_columns());
  for (size_t i = 0; i < columns.size(); ++i) columns[i] = i;
  nanoarrow::UniqueArrayStream stream;
  table.export_stream(columns, stream.get());
  nanoarrow::UniqueSchema schema;
  if (stream->get_schema(stream.get(), schema.get()) != 0) {
    throw Error(Error::Kind::pack, stream->get_last_error(stream.get()));
  }
  for (int64_t rows = 0; rows <= table.num_rows();) {
    nanoarrow::UniqueArray array;
    if (stream->get_next(stream.get(), array.get()) != 0) {
      throw Error(Error::Kind::pack, stream->get_last_error(stream.get()));
    }
    if (array->release == nullptr) break;
    rows += array->length;
    nanoarrow::UniqueArrayView view;
    ArrowError error;
    REQUIRE(ArrowArrayViewInitFromSchema(view.get(), schema.get(), &error) == NANOARROW_OK);
    REQUIRE(ArrowArrayViewSetArray(view.get(), array.get(), &error) == NANOARROW_OK);
    REQUIRE(ArrowArrayViewValidate(view.get(), NANOARROW_VALIDATION_LEVEL_FULL, &error) ==
            NANOARROW_OK);
  }
}

// Whether the stream opens and reads; anything but an Error fails the test.
static bool reads(const std::string& stream, uint64_t rows) {
  try {
    walk(*open_table(stream, rows));
    return true;
  } catch (const Error& error) {
    CHECK(contains(error.what(), "index table: "));
    return false;
  }
}

static void read_values(const Table& table, size_t column, int64_t row, int64_t count,
                        std::span<int64_t> out) {
  const Table::Values wanted{column, row, count, 8, std::as_writable_bytes(out)};
  table.read_values({&wanted, 1});
}

static void check_plain(const Table& table) {
  REQUIRE(table.num_rows() == 100);
  REQUIRE(table.num_batches() == 4);
  std::vector<int64_t> ids(95), id(1);
  read_values(table, column_of(table, "id"), 3, 95, ids);
  for (int64_t i = 0; i < 95; ++i) REQUIRE(ids[static_cast<size_t>(i)] == i + 3);
  for (int64_t row = 0; row < 100; ++row) {
    read_values(table, column_of(table, "id"), row, 1, id);
    REQUIRE(id[0] == row);
    const auto [batch, at] = table.locate(row);
    REQUIRE(number_at(*table.column(column_of(table, "id"), batch), at) == row);
    REQUIRE(number_at(*table.column(column_of(table, "small"), batch), at) == row % 7);
    REQUIRE(string_at(table.column(column_of(table, "name"), batch)->view(), at) ==
            "name " + std::to_string(row));
    const auto some = table.column(column_of(table, "some"), batch);
    REQUIRE(ArrowArrayViewIsNull(&some->view(), at) == (row % 3 != 0));
    const ArrowArrayView& list = table.column(column_of(table, "list"), batch)->view();
    REQUIRE(ArrowArrayViewListChildOffset(&list, at + 1) == 2 * (at + 1));
    REQUIRE(ArrowArrayViewGetIntUnsafe(list.children[0], 2 * at + 1) == row + 1);
  }
  walk(table);
}

TEST_CASE("a table of several batches gives each row its place") {
  check_plain(*kept_table("plain", 100));
}

TEST_CASE("compressed tables hold the same rows") {
  check_plain(*kept_table("lz4", 100));
  check_plain(*kept_table("zstd", 100));
}

TEST_CASE("row ranges of a plain column are read alone") {
  const std::string stream = kept_stream("plain");
  auto source = std::make_shared<FaultySource>(stream, ReadFaults{});
  const auto table = Table::open(source, {0, stream.size()}, "index", 100);
  const size_t id = column_of(*table, "id");
  const uint64_t calls = source->calls;
  std::vector<int64_t> values(5);
  read_values(*table, id, 20, 5, values);
  CHECK(source->calls == calls + 1);
  CHECK(values == std::vector<int64_t>{20, 21, 22, 23, 24});
  table->column(id, 2);
  const uint64_t read_once = source->calls;
  table->column(id, 2);
  CHECK(source->calls == read_once);
}

TEST_CASE("every type of the format is read and handed on") {
  const auto table = kept_table("every_type", 4);
  CHECK(table->num_columns() == 34);
  walk(*table);
  CHECK(std::string(table->field(column_of(*table, "timestamp")).format) == "tsu:Europe/Berlin");
  CHECK(std::string(table->field(column_of(*table, "fixed_list")).format) == "+w:2");
  CHECK(std::string(table->field(column_of(*table, "dec256")).format) == "d:50,0,256");

  const ArrowArrayView& views = table->column(column_of(*table, "utf8_view"), 0)->view();
  CHECK(string_at(views, 0) == "short");
  CHECK(ArrowArrayViewIsNull(&views, 1));
  CHECK(string_at(views, 2) == "longer than twelve bytes: \xC3\xA9");
  CHECK(decoded(table->column(column_of(*table, "dictionary"), 0)->view()) ==
        std::vector<std::string>{"x", "null", "y", "x"});

  const ArrowArrayView& dense = table->column(column_of(*table, "dense_union"), 0)->view();
  CHECK(ArrowArrayViewUnionChildIndex(&dense, 3) == 1);
  CHECK(ArrowArrayViewUnionChildOffset(&dense, 3) == 1);
  const ArrowArrayView& ends = table->column(column_of(*table, "run_ends"), 0)->view();
  CHECK(ends.length == 4);
  CHECK(ArrowArrayViewGetIntUnsafe(ends.children[0], 0) == 3);
}

TEST_CASE("metadata of schema and fields is kept") {
  const auto table = kept_table("every_type", 4);
  ArrowStringView value;
  REQUIRE(ArrowMetadataGetValue(table->schema().metadata, ArrowCharView("key"), &value) == 0);
  CHECK(std::string(value.data, static_cast<size_t>(value.size_bytes)) == "value");
  REQUIRE(ArrowMetadataGetValue(table->field(5).metadata, ArrowCharView("note"), &value) == 0);
  CHECK(std::string(value.data, static_cast<size_t>(value.size_bytes)) == "field 5");
}

TEST_CASE("dictionaries may be nested and replaced between batches") {
  const auto table = kept_table("nested_dictionaries", 6);
  REQUIRE(table->num_batches() == 2);
  walk(*table);
  for (size_t batch : {1, 0, 1}) {  // in any order
    const std::string first = batch == 0 ? "a" : "c", second = batch == 0 ? "b" : "d";
    CHECK(decoded(table->column(column_of(*table, "flat"), batch)->view()) ==
          std::vector<std::string>{second, first, "null"});
    CHECK(decoded(*table->column(column_of(*table, "listed"), batch)->view().children[0]) ==
          std::vector<std::string>{first, second, second});
    const ArrowArrayView& outer = table->column(column_of(*table, "outer"), batch)->view();
    CHECK(decoded(*outer.dictionary->children[0]) == std::vector<std::string>{second, first});
  }
}

TEST_CASE("a delta dictionary is an error that says so") {
  const auto table = kept_table("delta_dictionary", 5);
  CHECK(decoded(table->column(0, 0)->view()) == std::vector<std::string>{"a", "b"});
  CHECK(contains(thrown_by([&] { table->column(0, 1); }).text, "delta dictionaries"));
}

TEST_CASE("tables without rows, without columns and without batches open") {
  walk(*kept_table("no_rows", 0));
  walk(*kept_table("no_columns", 0));
  const auto table = kept_table("no_rows", 0);
  CHECK(table->num_columns() == 5);
  CHECK(table->num_batches() == 0);
}

TEST_CASE("a row count other than the header's is an error with both") {
  const Thrown thrown = thrown_by([] { kept_table("plain", 99); });
  CHECK(thrown.kind == Error::Kind::pack);
  CHECK(thrown.text == "index table: has 100 rows, the header says 99");
  CHECK(thrown_by([] { kept_table("plain", uint64_t{1} << 63); }).any);
}

TEST_CASE("a column is found by name unless two have it") {
  const auto table = kept_table("two_offsets", 2);
  CHECK_FALSE(table->find("missing").has_value());
  CHECK(
      contains(thrown_by([&] { table->find("offset"); }).text, "two columns are called 'offset'"));
}

TEST_CASE("the end of the stream may be missing, and anything may follow it") {
  const std::string stream = kept_stream("plain");
  CHECK(reads(stream.substr(0, stream.size() - 8), 100));  // without the end marker
  CHECK(reads(stream + "some bytes", 100));
  CHECK(reads(stream + stream, 100));
  CHECK(reads(stream + '\0', 100));
}

TEST_CASE("what is no stream is an error") {
  CHECK_FALSE(reads("", 0));
  CHECK_FALSE(reads("ab", 0));
  CHECK_FALSE(reads("ARROW1\0\0", 0));
  CHECK_FALSE(reads(std::string(100, '\0'), 0));
  CHECK_FALSE(reads(std::string(100, '\xFF'), 0));
}

TEST_CASE("a stream cut anywhere is an error or still whole") {
  for (const std::string name : {"plain", "nested_dictionaries", "every_type", "zstd"}) {
    const std::string stream = kept_stream(name);
    const uint64_t rows = name == "plain" || name == "zstd" ? 100 : name == "every_type" ? 4 : 6;
    for (size_t size = 0; size < stream.size(); ++size) {
      const bool whole = reads(stream.substr(0, size), rows);
      if (whole) REQUIRE(size >= stream.size() - 8);
    }
  }
}

// Changes one to three bytes, or bits, anywhere.
static std::string damaged(std::string stream, std::mt19937_64& random) {
  for (uint64_t count = 1 + random() % 3; count > 0; --count) {
    char& byte = stream[random() % stream.size()];
    switch (random() % 4) {
      case 0:
        byte = static_cast<char>(random());
        break;
      case 1:
        byte = static_cast<char>(byte ^ (1 << random() % 8));
        break;
      case 2:
        byte = random() % 2 == 0 ? '\xFF' : '\x7F';
        break;
      default:
        byte = static_cast<char>(byte + (random() % 2 == 0 ? 1 : -1));
        break;
    }
  }
  return stream;
}

TEST_CASE("a damaged stream is an error or reads, and never more") {
  std::mt19937_64 random(1);
  for (const auto& [name, rows] : {std::pair{"every_type", 4},
                                   {"nested_dictionaries", 6},
                                   {"plain", 100},
                                   {"lz4", 100},
                                   {"zstd", 100}}) {
    const std::string stream = kept_stream(name);
    size_t refused = 0;
    for (int i = 0; i < 2000; ++i)
      refused += reads(damaged(stream, random), static_cast<uint64_t>(rows)) ? 0 : 1;
    CHECK(refused > 0);
    CHECK(refused < 2000);
  }
}

TEST_CASE("a stream whose fields are missing in turn is an error or reads") {
  for (const auto& [name, rows] :
       {std::pair{"every_type", 4u}, {"nested_dictionaries", 6u}, {"zstd", 100u}}) {
    const std::string stream = kept_stream(name);
    // A flatbuffer's field is missing when its place in the table of places is zero.
    for (size_t at = 0; at + 2 <= stream.size(); at += 2) {
      std::string bad = stream;
      bad[at] = bad[at + 1] = '\0';
      if (bad != stream) reads(bad, rows);
    }
  }
}

TEST_CASE("one dictionary for columns of two types is an error") {
  const std::string stream = kept_stream("two_dictionaries");
  REQUIRE(reads(stream, 2));
  // Wherever the second dictionary's id stands in the schema, make it the first one's.
  const std::string id = std::string("\1") + std::string(7, '\0');
  bool found = false;
  for (size_t at = stream.find(id); at != std::string::npos; at = stream.find(id, at + 1)) {
    std::string bad = stream;
    bad[at] = '\0';
    const Thrown thrown = thrown_by([&] { walk(*open_table(bad, 2)); });
    found |= contains(thrown.text, "two types for one dictionary");
  }
  CHECK(found);
}

TEST_CASE("a table that cannot be read names table and column, and reads again when it can") {
  const std::string stream = kept_stream("plain");
  auto source =
      std::make_shared<FaultySource>(stream, ReadFaults{.at_most = 1000, .interrupted = true});
  const auto table = Table::open(source, {0, stream.size()}, "slide", 100);
  source->faults.bad_to = stream.size();
  const Thrown thrown = thrown_by([&] { table->column(2, 2); });
  CHECK(thrown.code == EIO);
  CHECK(contains(thrown.text, "slide table: column 'name': cannot read"));
  source->faults = {};
  CHECK_NOTHROW(table->column(2, 2));
}

TEST_CASE("an exported batch outlives its stream and its table") {
  nanoarrow::UniqueArray array;
  nanoarrow::UniqueSchema schema;
  {
    nanoarrow::UniqueArrayStream stream;
    kept_table("every_type", 4)->export_stream({16, 33}, stream.get());
    REQUIRE(stream->get_schema(stream.get(), schema.get()) == 0);
    REQUIRE(stream->get_next(stream.get(), array.get()) == 0);
    nanoarrow::UniqueArray end;
    REQUIRE(stream->get_next(stream.get(), end.get()) == 0);
    CHECK(end->release == nullptr);
  }
  REQUIRE(array->n_children == 2);
  // A child may be moved out of its batch.
  nanoarrow::UniqueArray child;
  ArrowArrayMove(array->children[1], child.get());
  array.reset();
  nanoarrow::UniqueArrayView view;
  ArrowError error;
  REQUIRE(ArrowArrayViewInitFromSchema(view.get(), schema->children[1], &error) == 0);
  REQUIRE(ArrowArrayViewSetArray(view.get(), child.get(), &error) == 0);
  CHECK(decoded(*view.get()) == std::vector<std::string>{"x", "null", "y", "x"});
}

TEST_CASE("nulls that the metadata counts are found without reading the column") {
  const auto table = kept_table("plain", 100);
  CHECK_NOTHROW(table->require_no_nulls(column_of(*table, "id")));
  CHECK(contains(thrown_by([&] { table->require_no_nulls(column_of(*table, "some")); }).text,
                 "index table: column 'some' has nulls"));
}

TEST_CASE("many threads read one table") {
  const auto table = kept_table("zstd", 100);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const size_t batch = static_cast<size_t>((i + t) % 2) * 2;
        if (number_at(*table->column(0, batch), 1) != (batch == 0 ? 1 : 11)) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}
