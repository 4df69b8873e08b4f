// A file that appears at its path whole or not at all: written under a temporary name beside it,
// synced, then renamed.
#pragma once

#include <string>

#include "iac/bytes.h"

namespace iac {

class OutputFile {
 public:
  // Creates the temporary file, mode 0600, and missing parent folders. An existing `path` is an
  // Error unless `overwrite`; a symlink there is followed, so that the file behind it is replaced.
  OutputFile(const std::string& path, bool overwrite);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  // Removes the temporary file unless it was published.
  virtual ~OutputFile();

  const std::string& path() const { return path_; }
  void write_at(uint64_t offset, Bytes data);

  // Makes the file durable and gives it its name and mode: the replaced file's, or what the umask
  // says. Throws Error, with the old file untouched.
  void publish();

 protected:
  // One attempt: bytes written, or a negative errno.
  virtual int64_t write_some(uint64_t offset, Bytes data);
  // 0, or the errno.
  virtual int sync();

 private:
  std::string path_;       // where it will appear
  std::string temporary_;  // where it is; empty once published
  bool overwrite_;
  unsigned generation_;  // of the process that made it
  int descriptor_ = -1;
  uint64_t run_begin_ = 0, run_end_ = 0;  // last written one behind the other, not on their way yet
};

}  // namespace iac
