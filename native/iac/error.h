// The one exception type of the core. Its kind says what went wrong, its fields where.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace iac {

class Error : public std::exception {
 public:
  enum class Kind {
    pack,       // the file is not a valid pack, or a part of it is damaged
    not_found,  // there is no such file
    system,     // the operating system refused; code() is the errno
    checksum,   // stored bytes differ from their crc32
    stale,      // a reference made from another version of the pack
    codec,      // a payload cannot be encoded or decoded
    index,      // a row that the pack does not have
    argument,   // the caller asked for something impossible
  };

  Error(Kind kind, std::string reason, int code = 0)
      : kind_(kind), reason_(std::move(reason)), code_(code) {
    compose();
  }

  // Say where, keeping what an inner frame already said.
  Error&& in(const std::string& pack) && {
    if (pack_.empty()) pack_ = pack;
    compose();
    return std::move(*this);
  }
  Error&& at(int64_t row) && {
    if (row_ < 0) row_ = row;
    compose();
    return std::move(*this);
  }

  const char* what() const noexcept override { return text_.c_str(); }
  Kind kind() const { return kind_; }
  const std::string& reason() const { return reason_; }
  const std::string& pack() const { return pack_; }
  int64_t row() const { return row_; }  // -1: the error is not of one row
  int code() const { return code_; }

 private:
  void compose() {
    text_.clear();
    if (!pack_.empty()) text_ += pack_ + ": ";
    if (row_ >= 0) text_ += "row " + std::to_string(row_) + ": ";
    text_ += reason_;
  }

  Kind kind_;
  std::string reason_;
  std::string pack_;
  int64_t row_ = -1;
  int code_;
  std::string text_;
};

// Arrow data of a table that breaks the format's rules.
Error damaged_table(const std::string& reason);

// The errno of a failed call as an error: not_found for a missing file, system otherwise.
Error system_error(int code, const std::string& doing);

}  // namespace iac
