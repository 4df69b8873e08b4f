#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "iac/output_file.h"
#include "tests/packs.h"

using namespace iac;
using namespace iac::tests;

static mode_t mode_of(const std::string& path) {
  struct stat file;
  REQUIRE(lstat(path.c_str(), &file) == 0);
  return file.st_mode & 07777;
}

static void write_and_publish(OutputFile& file, std::string_view bytes) {
  file.write_at(0, bytes_of(bytes));
  file.publish();
}

// Runs `body` under that umask.
template <class Body>
static void under_umask(mode_t mask, Body body) {
  const mode_t old = umask(mask);
  body();
  umask(old);
}

TEST_CASE("a file appears at its path when it is published, and leaves nothing else") {
  const Folder folder;
  {
    OutputFile file(folder / "new", false);
    CHECK_FALSE(fs::exists(folder / "new"));
    const auto names = folder.names();
    REQUIRE(names.size() == 1);
    CHECK(mode_of(folder / names[0]) == 0600);
    file.write_at(3, bytes_of("def"));
    file.write_at(0, bytes_of("abc"));
    file.publish();
  }
  CHECK(read_file(folder / "new") == "abcdef");
  CHECK(folder.names() == std::vector<std::string>{"new"});
}

TEST_CASE("a file that is not published leaves nothing") {
  const Folder folder;
  {
    OutputFile(folder / "new", false).write_at(0, bytes_of("abc"));
  }
  CHECK(folder.names().empty());
}

TEST_CASE("a new file's mode follows the umask, a replaced file keeps its own") {
  const Folder folder;
  for (const mode_t mask : {022, 077, 002, 0}) {
    under_umask(mask, [&] {
      OutputFile file(folder / "new", true);
      write_and_publish(file, "x");
    });
    CHECK(mode_of(folder / "new") == (0666 & ~mask));
    fs::remove(folder / "new");
  }
  write_file(folder / "old", "old");
  for (const mode_t mode : {0640, 0444, 0604}) {
    REQUIRE(chmod((folder / "old").c_str(), mode) == 0);
    OutputFile file(folder / "old", true);
    write_and_publish(file, "newer");
    CHECK(mode_of(folder / "old") == mode);
    CHECK(read_file(folder / "old") == "newer");
  }
}

TEST_CASE("an existing file is refused unless it is to be replaced") {
  const Folder folder;
  write_file(folder / "old", "old");
  const Thrown thrown = thrown_by([&] { OutputFile(folder / "old", false); });
  CHECK(thrown.code == EEXIST);
  CHECK(thrown.text ==
        (folder / "old") + ": pack already exists, pass overwrite=True to replace it");
  fs::create_symlink("nowhere", folder / "dangling");
  CHECK(thrown_by([&] { OutputFile(folder / "dangling", false); }).code == EEXIST);
  CHECK(read_file(folder / "old") == "old");
}

TEST_CASE("a file that appears in the meantime is refused as well") {
  const Folder folder;
  {
    FaultyFile file(folder / "new", false,
                    {.before_publish = [&] { write_file(folder / "new", "other"); }});
    file.write_at(0, bytes_of("mine"));
    CHECK(thrown_by([&] { file.publish(); }).code == EEXIST);
  }
  CHECK(read_file(folder / "new") == "other");
  CHECK(folder.names() == std::vector<std::string>{"new"});
}

TEST_CASE("a symlink is followed and stays") {
  const Folder folder;
  fs::create_directory(folder / "real");
  write_file(folder / "real/pack", "old");
  fs::create_symlink("real/pack", folder / "link");
  {
    OutputFile file(folder / "link", true);
    write_and_publish(file, "new");
  }
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_file(folder / "real/pack") == "new");
  CHECK(folder.names() == std::vector<std::string>{"link", "real"});

  fs::create_symlink("real/later", folder / "dangling");
  {
    OutputFile file(folder / "dangling", true);
    write_and_publish(file, "first");
  }
  CHECK(read_file(folder / "real/later") == "first");
  CHECK(fs::is_symlink(folder / "dangling"));

  fs::create_symlink("loop", folder / "loop");
  CHECK(thrown_by([&] { OutputFile(folder / "loop", true); }).code == ELOOP);
}

TEST_CASE("missing folders are made, and a long name fits") {
  const Folder folder;
  const std::string name(255, 'n');
  {
    OutputFile file(folder / ("a/b/" + name), false);
    write_and_publish(file, "x");
  }
  CHECK(read_file(folder / ("a/b/" + name)) == "x");
}

TEST_CASE("what is no file cannot be replaced") {
  const Folder folder;
  CHECK(thrown_by([&] { OutputFile(folder / ".", true); }).code == EISDIR);
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK(thrown_by([&] { OutputFile(folder / "fifo", true); }).code == EINVAL);
  write_file(folder / "file", "x");
  CHECK(thrown_by([&] { OutputFile(folder / "file/below", true); }).any);
  CHECK(folder.names() == std::vector<std::string>{"fifo", "file"});
}

TEST_CASE("short and interrupted writes are carried on") {
  const Folder folder;
  std::mt19937_64 random(1);
  const std::string bytes = noise(random, 10000);
  {
    FaultyFile file(folder / "new", false, {.at_most = 7, .interrupted = true});
    write_and_publish(file, bytes);
  }
  CHECK(read_file(folder / "new") == bytes);
}

TEST_CASE("a full disk or a failed sync leaves no file and keeps the old one") {
  const Folder folder;
  write_file(folder / "old", "old");
  for (const std::string name : {"old", "new"}) {
    {
      FaultyFile file(folder / name, true, {.at_most = 100, .full_after = 250});
      const Thrown thrown = thrown_by([&] { file.write_at(0, bytes_of(std::string(300, 'x'))); });
      CHECK(thrown.code == ENOSPC);
      CHECK(contains(thrown.text, (folder / name) + ": cannot write"));
    }
    {
      FaultyFile file(folder / name, true, {.sync_error = EIO});
      const Thrown thrown = thrown_by([&] { write_and_publish(file, "x"); });
      CHECK(thrown.code == EIO);
      CHECK(contains(thrown.text, "cannot sync"));
    }
  }
  CHECK(read_file(folder / "old") == "old");
  CHECK(folder.names() == std::vector<std::string>{"old"});
}

TEST_CASE("a forked child that drops its copy leaves the parent's file") {
  const Folder folder;
  auto file = std::make_unique<OutputFile>(folder / "new", false);
  const pid_t child = fork();
  if (child == 0) {
    file.reset();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  write_and_publish(*file, "x");
  CHECK(read_file(folder / "new") == "x");
}
