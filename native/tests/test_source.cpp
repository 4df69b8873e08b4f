#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "iac/source.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

static std::string digits(size_t count) {
  std::string text(count, '\0');
  for (size_t i = 0; i < count; ++i) text[i] = static_cast<char>(i * 7 % 251);
  return text;
}

// Reads pieces of these sizes, one behind the other.
static std::string read_pieces(const Source& source, uint64_t offset,
                               const std::vector<size_t>& sizes) {
  std::vector<std::string> memory;
  for (const size_t size : sizes) memory.emplace_back(size, '?');
  std::vector<MutableBytes> pieces;
  for (auto& text : memory) pieces.push_back(std::as_writable_bytes(std::span(text)));
  source.read_at(offset, pieces);
  std::string all;
  for (const auto& text : memory) all += text;
  return all;
}

TEST_CASE("a read fills its pieces whatever short and interrupted reads come between") {
  const std::string bytes = digits(5000);
  const std::vector<size_t> sizes{1, 0, 100, 3, 0, 0, 1000, 17, 0};
  for (const size_t at_most : {1, 2, 3, 7, 99, 100, 101, 1000, 5000}) {
    const FaultySource source(bytes, {.at_most = at_most, .interrupted = true});
    CHECK(read_pieces(source, 11, sizes) == bytes.substr(11, 1121));
  }
}

TEST_CASE("a read of nothing asks the file for nothing") {
  const FaultySource source(digits(10), {});
  source.read_at(10, MutableBytes());
  source.read_at(99, std::span<const MutableBytes>());
  CHECK(read_pieces(source, 5, {0, 0}).empty());
  CHECK(source.calls == 0);
}

TEST_CASE("a read past the end of a truncated file is an error that says where it ends") {
  const FaultySource source(digits(100), {.at_most = 30, .cut_at = 50});
  CHECK(read_pieces(source, 0, {50}) == digits(50));
  const Thrown thrown = thrown_by([&] { read_pieces(source, 20, {20, 20}); });
  CHECK(thrown.kind == Error::Kind::pack);
  CHECK(contains(thrown.text, "file ends at byte 50"));
}

TEST_CASE("a failed read is an error with its errno") {
  const FaultySource source(digits(100), {.bad_from = 40, .bad_to = 41});
  CHECK(read_pieces(source, 0, {40}).size() == 40);
  CHECK(read_pieces(source, 41, {59}).size() == 59);
  const Thrown thrown = thrown_by([&] { read_pieces(source, 0, {41}); });
  CHECK(thrown.kind == Error::Kind::system);
  CHECK(thrown.code == EIO);
}

TEST_CASE("a local file is read in more pieces than one system call takes") {
  const Folder folder;
  const std::string bytes = digits(3000);
  write_file(folder / "file", bytes);
  const auto source = LocalSource::open(folder / "file");
  CHECK(source->size() == 3000);
  CHECK(read_pieces(*source, 1, std::vector<size_t>(1300, 2)) == bytes.substr(1, 2600));
}

TEST_CASE("a local file stays the one that was opened when its name is taken or removed") {
  const Folder folder;
  write_file(folder / "file", "first");
  const auto source = LocalSource::open(folder / "file");
  CHECK(source->identity() == local_identity(folder / "file"));
  write_file(folder / "other", "other");
  fs::rename(folder / "other", folder / "file");
  CHECK(source->identity() != local_identity(folder / "file"));
  CHECK(read_pieces(*source, 0, {5}) == "first");
  fs::remove(folder / "file");
  CHECK(read_pieces(*source, 0, {5}) == "first");
  CHECK(local_identity(folder / "file").empty());
}

TEST_CASE("a local file that was truncated after it was opened is an error") {
  const Folder folder;
  write_file(folder / "file", digits(100));
  const auto source = LocalSource::open(folder / "file");
  fs::resize_file(folder / "file", 10);
  CHECK(contains(thrown_by([&] { read_pieces(*source, 0, {100}); }).text, "file ends at byte 10"));
}

TEST_CASE("what is not a file does not open") {
  const Folder folder;
  const Thrown missing = thrown_by([&] { LocalSource::open(folder / "missing"); });
  CHECK(missing.kind == Error::Kind::not_found);
  CHECK(missing.code == ENOENT);
  CHECK(contains(missing.text, folder / "missing"));

  const Thrown directory = thrown_by([&] { LocalSource::open(folder / "."); });
  CHECK(directory.kind == Error::Kind::system);
  CHECK(directory.code == EISDIR);

  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK(thrown_by([&] { LocalSource::open(folder / "fifo"); }).code == EINVAL);
}
