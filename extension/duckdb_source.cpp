#include "duckdb_source.h"

#include <iac/error.h>
#include <iac/per_process.h>

#include <algorithm>
#include <string_view>

#include "files.h"

namespace iac::duckdb {
namespace {

Error failed(const std::string& doing, duckdb_error_data error) {
  const Handle<duckdb_error_data> owner(error);
  const std::string message = message_of(owner.get());
  // fsspec, which says what to do where fsspec is called.
  if (message.find("range requests") != message.npos) {
    return {Error::Kind::system, doing + ": the server ignores ranges, download the file"};
  }
  return {Error::Kind::system, doing + ": " + message};
}

// Two files that were opened here are apart from each other. Elsewhere, in fsspec's memory say,
// they may be one object with one position, so that a thread would read where another one went.
bool opens_apart(std::string_view url) {
  constexpr std::string_view schemes[] = {"http", "https", "s3", "s3a",  "s3n",   "gs",   "gcs",
                                          "r2",   "az",    "hf", "abfs", "abfss", "azure"};
  const std::string_view scheme = url.substr(0, url.find("://"));
  return std::find(std::begin(schemes), std::end(schemes), scheme) != std::end(schemes);
}

std::unique_lock<std::mutex> turn(bool alone) {
  static auto* const mutex = new PerProcess<std::mutex>;  // leaked: queries may outlive statics
  return alone ? std::unique_lock(**mutex) : std::unique_lock<std::mutex>();
}

ReadStyle style_of(bool alone) {
  ReadStyle style = remote_style;
  if (alone) style.at_once = 1;
  return style;
}

}  // namespace

DuckdbSource::DuckdbSource(std::string url, Handle<duckdb_file_system> files, File first,
                           uint64_t size, bool alone)
    : RemoteSource(size, {}, style_of(alone)),
      url_(std::move(url)),
      alone_(alone),
      files_(std::move(files)) {
  idle_.push_back(std::move(first));
}

std::shared_ptr<DuckdbSource> DuckdbSource::open(duckdb_client_context context,
                                                 const std::string& url) {
  Handle<duckdb_file_system> files(duckdb_client_context_get_file_system(context));
  const bool alone = !opens_apart(url);
  auto lock = turn(alone);
  File file = open_file(files.get(), url);
  const int64_t size = duckdb_file_handle_size(file.get());
  if (size < 0) throw failed("cannot tell its size", duckdb_file_handle_error_data(file.get()));
  if (alone) lock.unlock();
  const std::shared_ptr<DuckdbSource> source(
      new DuckdbSource(url, std::move(files), std::move(file), static_cast<uint64_t>(size), alone));
  source->start(url);
  return source;
}

uint64_t DuckdbSource::fetch(uint64_t offset, MutableBytes out) const {
  const auto lock = turn(alone_);
  File file = take();
  if (duckdb_file_handle_seek(file.get(), static_cast<int64_t>(offset)) != DuckDBSuccess) {
    throw failed("cannot seek", duckdb_file_handle_error_data(file.get()));
  }
  uint64_t got = 0;
  while (got < out.size()) {
    const int64_t count = duckdb_file_handle_read(file.get(), out.data() + got,
                                                  static_cast<int64_t>(out.size() - got));
    if (count < 0) throw failed("cannot read", duckdb_file_handle_error_data(file.get()));
    if (count == 0) break;
    got += static_cast<uint64_t>(count);
  }
  give_back(std::move(file));
  return got;
}

// A handle whose read failed is closed, not given back.
DuckdbSource::File DuckdbSource::take() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      File file = std::move(idle_.back());
      idle_.pop_back();
      return file;
    }
  }
  return open_file(files_.get(), url_);
}

void DuckdbSource::give_back(File file) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(file));
}

}  // namespace iac::duckdb
