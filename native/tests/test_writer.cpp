#include <catch2/catch.hpp>

#include "iac/writer.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

namespace {

const std::string slides =
    stream_of({number_column("slide_idx", NANOARROW_TYPE_INT64, std::vector{0u})});

// An index of so many records, whose length is the same whatever is in it.
std::string index_of(const Writer& writer) {
  TestIndex index;
  index.offsets = writer.offsets();
  index.lengths.assign(writer.lengths().begin(), writer.lengths().end());
  index.crc32s.assign(writer.crc32s().begin(), writer.crc32s().end());
  return stream_of(index.columns());
}

size_t index_size(size_t records) {
  TestIndex index;
  for (size_t i = 0; i < records; ++i) index.add(0, 0, 0);
  return stream_of(index.columns()).size();
}

Writer writer_to(std::unique_ptr<OutputFile> file, size_t records,
                 const std::string& header = "{}") {
  return Writer(std::move(file), header, {slides.size(), index_size(records), 0, 1, records});
}

void build(std::unique_ptr<OutputFile> file, const std::vector<std::string>& payloads,
           const std::string& header = "{}") {
  Writer writer = writer_to(std::move(file), payloads.size(), header);
  for (const std::string& payload : payloads) writer.append(bytes_of(payload));
  writer.finish(bytes_of(slides), bytes_of(index_of(writer)));
}

std::vector<std::string> some_payloads() {
  std::mt19937_64 random(1);
  std::vector<std::string> payloads{"first", "", noise(random, 3 << 20), "", "after a large one"};
  for (int i = 0; i < 500; ++i) payloads.push_back(noise(random, random() % 9000));
  payloads.push_back(noise(random, 1 << 20));
  return payloads;
}

}  // namespace

TEST_CASE("records in one piece are written as those one by one are") {
  const Folder folder;
  const auto payloads = some_payloads();
  std::string data = "before";
  std::vector<uint64_t> offsets{data.size()};
  for (const std::string& payload : payloads) {
    data += payload;
    offsets.push_back(data.size());
  }
  data += "behind";
  build(std::make_unique<OutputFile>(folder / "one.iac", false), payloads);
  Writer writer =
      writer_to(std::make_unique<OutputFile>(folder / "all.iac", false), payloads.size());
  const std::span all(offsets);
  writer.append_all(bytes_of(data), {});
  writer.append_all(bytes_of(data), all.first(1));
  writer.append_all(bytes_of(data), all.first(8));
  writer.append(bytes_of(payloads[7]));
  writer.append_all(bytes_of(data), all.subspan(8));
  writer.finish(bytes_of(slides), bytes_of(index_of(writer)));
  CHECK(read_file(folder / "all.iac") == read_file(folder / "one.iac"));
}

TEST_CASE("offsets outside the data are an error") {
  const Folder folder;
  Writer writer = writer_to(std::make_unique<OutputFile>(folder / "x.iac", false), 2);
  for (const std::vector<uint64_t>& offsets :
       {std::vector<uint64_t>{0, 5}, {3, 2}, {5, 5}, {0, UINT64_MAX, 1}}) {
    const Thrown thrown = thrown_by([&] { writer.append_all(bytes_of("data"), offsets); });
    CHECK(thrown.kind == Error::Kind::argument);
  }
}

TEST_CASE("what is written is read back, and is the same bytes each time") {
  const Folder folder;
  const auto payloads = some_payloads();
  build(std::make_unique<OutputFile>(folder / "pack.iac", false), payloads,
        "{\"payload_type\": \"x\"}");
  const auto pack = Pack::open(folder / "pack.iac");
  std::vector<int64_t> rows;
  for (size_t i = payloads.size(); i-- > 0;) rows.push_back(static_cast<int64_t>(i));
  const Batch batch = pack->read(rows, {});
  for (size_t i = 0; i < payloads.size(); ++i) {
    REQUIRE(record_of(batch, payloads.size() - 1 - i) == payloads[i]);
  }
  CHECK(pack->header().payload_type == "x");
  CHECK(batch.unchecked == 0);

  build(std::make_unique<FaultyFile>(folder / "again.iac", false,
                                     WriteFaults{.at_most = 100000, .interrupted = true}),
        payloads, "{\"payload_type\": \"x\"}");
  CHECK(read_file(folder / "again.iac") == read_file(folder / "pack.iac"));
}

TEST_CASE("a pack of no records is written") {
  const Folder folder;
  build(std::make_unique<OutputFile>(folder / "pack.iac", false), {});
  CHECK(Pack::open(folder / "pack.iac")->num_records() == 0);
}

TEST_CASE("a data segment without records is written") {
  const Folder folder;
  const std::string index =
      stream_of({number_column("id", NANOARROW_TYPE_INT64, std::vector{1u, 2u})});
  Writer writer(std::make_unique<OutputFile>(folder / "pack.iac", false), "{}",
                {slides.size(), index.size(), 0, 1, 2});
  writer.append_data(bytes_of("some "));
  writer.append_data(bytes_of(std::string(3 << 20, 'x')));
  writer.append_data(bytes_of(" data"));
  CHECK(writer.data_length() == (3 << 20) + 10);
  writer.finish(bytes_of(slides), bytes_of(index));
  const auto pack = Pack::open(folder / "pack.iac");
  CHECK(pack->layout().kind() == Layout::Kind::none);
  std::string end(5, '?');
  pack->read_data({(3 << 20) + 5, 5}, std::as_writable_bytes(std::span(end)));
  CHECK(end == " data");
}

TEST_CASE("a payload too many is refused at once") {
  const Folder folder;
  {
    Writer writer = writer_to(std::make_unique<OutputFile>(folder / "pack.iac", false), 1);
    writer.append(bytes_of("one"));
    const Thrown thrown = thrown_by([&] { writer.append(bytes_of("two")); });
    CHECK(thrown.kind == Error::Kind::argument);
    CHECK(contains(thrown.text, "more payloads than the 1 rows of the index table"));
  }
  CHECK(folder.names().empty());
}

TEST_CASE("a payload of 4 GiB is refused before it is read") {
  const Folder folder;
  Writer writer = writer_to(std::make_unique<OutputFile>(folder / "pack.iac", false), 1);
  const char byte = 0;
  const Thrown thrown = thrown_by([&] { writer.append(as_bytes(&byte, size_t{1} << 32)); });
  CHECK(contains(thrown.text, "payload of 4294967296 bytes is too large"));
  CHECK(thrown.row == 0);
}

TEST_CASE("a header that does not fit is refused before any payload") {
  const Folder folder;
  const std::string large = "{\"a\": \"" + std::string(70000, 'x') + "\"}";
  CHECK(contains(thrown_by([&] {
                   writer_to(std::make_unique<OutputFile>(folder / "pack.iac", false), 1, large);
                 }).text,
                 "header JSON has"));
  CHECK(folder.names().empty());
}

TEST_CASE("tables of another length than announced are refused") {
  const Folder folder;
  {
    Writer writer = writer_to(std::make_unique<OutputFile>(folder / "pack.iac", false), 1);
    writer.append(bytes_of("one"));
    CHECK(contains(thrown_by([&] { writer.finish(bytes_of(slides), bytes_of("short")); }).text,
                   "tables differ in length"));
  }
  CHECK(folder.names().empty());
}

TEST_CASE("whatever write fails, the target is the old pack or none") {
  const Folder folder;
  const std::vector<std::string> payloads{"one", std::string(2 << 20, 'x'), "three"};
  build(std::make_unique<OutputFile>(folder / "old.iac", false), {"old"});
  const std::string old = read_file(folder / "old.iac");
  for (const uint64_t full_after :
       {0, 1, 3, 4096, 2 << 20, (2 << 20) + 8, (2 << 20) + 65000, (2 << 20) + 66000}) {
    for (const std::string name : {"old.iac", "new.iac"}) {
      const Thrown thrown = thrown_by([&] {
        build(std::make_unique<FaultyFile>(folder / name, true,
                                           WriteFaults{.at_most = 9999, .full_after = full_after}),
              payloads);
      });
      CHECK(thrown.code == ENOSPC);
    }
  }
  const Thrown thrown = thrown_by([&] {
    build(std::make_unique<FaultyFile>(folder / "new.iac", true, WriteFaults{.sync_error = EIO}),
          payloads);
  });
  CHECK(thrown.code == EIO);
  CHECK(read_file(folder / "old.iac") == old);
  CHECK(folder.names() == std::vector<std::string>{"old.iac"});
}
