#include "duckdb_source.h"

#include <iac/error.h>

#include "files.h"

namespace iac::duckdb {
namespace {

Error failed(const std::string& doing, duckdb_error_data error) {
  const Handle<duckdb_error_data> owner(error);
  return {Error::Kind::system, doing + ": " + message_of(owner.get())};
}

}  // namespace

std::shared_ptr<DuckdbSource> DuckdbSource::open(duckdb_client_context context,
                                                 const std::string& url) {
  Handle<duckdb_file_system> files(duckdb_client_context_get_file_system(context));
  File file = open_file(files.get(), url);
  const int64_t size = duckdb_file_handle_size(file.get());
  if (size < 0) throw failed("cannot tell its size", duckdb_file_handle_error_data(file.get()));
  const std::shared_ptr<DuckdbSource> source(
      new DuckdbSource(url, std::move(files), std::move(file), static_cast<uint64_t>(size)));
  source->start(url);
  return source;
}

uint64_t DuckdbSource::fetch(uint64_t offset, MutableBytes out) const {
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
