#include "iac/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "iac/error.h"
#include "iac/per_process.h"
#include "iac/platform.h"

namespace iac {

namespace fs = std::filesystem;

// So much goes to disk at a time while the next is written.
static constexpr uint64_t writeback_bytes = uint64_t{8} << 20;

static Error exists(const std::string& path) {
  return Error(Error::Kind::system, "pack already exists, pass overwrite=True to replace it",
               EEXIST)
      .in(path);
}

// The path behind a symlink, where there may be no file yet.
static fs::path behind_link(fs::path path, std::error_code& failed) {
  for (int links = 0; fs::is_symlink(fs::symlink_status(path, failed)); ++links) {
    if (links == 40)
      failed = std::make_error_code(std::errc::too_many_symbolic_link_levels);
    else
      path = path.parent_path() / fs::read_symlink(path, failed);
    if (failed) return path;
  }
  failed.clear();  // nothing there is fine
  return path;
}

OutputFile::OutputFile(const std::string& path, bool overwrite)
    : path_(path), overwrite_(overwrite), generation_(fork_generation()) {
  if (path.find('\0') != std::string::npos) throw system_error(EINVAL, "cannot write").in(path);
  std::error_code ignored, failed;
  const auto status = fs::symlink_status(path, failed);
  // Better now than when the finished file gets its name.
  if (failed == std::errc::filename_too_long) {
    throw system_error(failed.value(), "cannot write").in(path);
  }
  if (fs::exists(status) && !overwrite) throw exists(path);
  failed.clear();
  if (fs::is_symlink(status)) path_ = behind_link(path, failed).string();
  if (failed) throw system_error(failed.value(), "cannot follow the link").in(path);
  const auto target = fs::status(path_, ignored);
  if (fs::is_directory(target)) throw system_error(EISDIR, "cannot write").in(path);
  if (fs::exists(target) && !fs::is_regular_file(target)) {
    throw Error(Error::Kind::system, "is not a file that can be replaced", EINVAL).in(path);
  }
  fs::path folder = fs::path(path_).parent_path();
  if (folder.empty()) folder = ".";
  fs::create_directories(folder, failed);
  if (failed) throw system_error(failed.value(), "cannot create its folder").in(path);

  // A name may have 255 bytes.
  const std::string name = fs::path(path_).filename().string().substr(0, 200);
  temporary_ = (folder / ("." + name + ".XXXXXX")).string();
  descriptor_ = mkostemp(temporary_.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    temporary_.clear();
    throw system_error(errno, "cannot create a temporary file beside it").in(path);
  }
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  // A forked child that drops its copy leaves the parent's file alone.
  const bool own = generation_ == fork_generation();
  if (!temporary_.empty() && own) ::unlink(temporary_.c_str());
}

int64_t OutputFile::write_some(uint64_t offset, Bytes data) {
  const ssize_t written = pwrite(descriptor_, data.data(), data.size(), static_cast<off_t>(offset));
  return written >= 0 ? written : -errno;
}

int OutputFile::sync() { return fsync(descriptor_) == 0 ? 0 : errno; }

void OutputFile::write_at(uint64_t offset, Bytes data) {
  if (offset != run_end_) run_begin_ = offset;
  while (!data.empty()) {
    const int64_t written = write_some(offset, data);
    if (written == -EINTR) continue;
    if (written <= 0) {
      throw system_error(written < 0 ? static_cast<int>(-written) : EIO, "cannot write").in(path_);
    }
    offset += static_cast<uint64_t>(written);
    data = data.subspan(static_cast<size_t>(written));
  }
  run_end_ = offset;
  if (run_end_ - run_begin_ < writeback_bytes) return;
  platform::begin_writeback(descriptor_, run_begin_, run_end_ - run_begin_);
  run_begin_ = run_end_;
}

void OutputFile::publish() {
  struct stat replaced;
  const bool replaces = overwrite_ && stat(path_.c_str(), &replaced) == 0;
  const mode_t mode = replaces ? replaced.st_mode & 07777 : platform::default_file_mode();
  if (fchmod(descriptor_, mode) != 0) throw system_error(errno, "cannot set its mode").in(path_);
  if (const int failed = sync(); failed != 0) throw system_error(failed, "cannot sync").in(path_);
  const int failed = overwrite_ ? (::rename(temporary_.c_str(), path_.c_str()) == 0 ? 0 : errno)
                                : platform::rename_new(temporary_, path_);
  if (failed == EEXIST) throw exists(path_);
  if (failed != 0) throw system_error(failed, "cannot rename the finished file to it").in(path_);
  temporary_.clear();
  const std::string folder = fs::path(path_).parent_path().string();
  if (const int unsynced = platform::sync_directory(folder.empty() ? "." : folder); unsynced != 0) {
    throw system_error(unsynced, "written, but its folder cannot be synced").in(path_);
  }
}

}  // namespace iac
