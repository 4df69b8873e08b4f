// Owners of what the C API hands out, and the border that no exception crosses.
#pragma once

#include <iac/bytes.h>
#include <iac/utf8.h>

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "duckdb_api.h"

namespace iac::duckdb {

inline void destroy(duckdb_client_context* handle) { duckdb_destroy_client_context(handle); }
inline void destroy(duckdb_config_option* handle) { duckdb_destroy_config_option(handle); }
inline void destroy(duckdb_copy_function* handle) { duckdb_destroy_copy_function(handle); }
inline void destroy(duckdb_error_data* handle) { duckdb_destroy_error_data(handle); }
inline void destroy(duckdb_expression* handle) { duckdb_destroy_expression(handle); }
inline void destroy(duckdb_file_handle* handle) { duckdb_destroy_file_handle(handle); }
inline void destroy(duckdb_file_open_options* handle) { duckdb_destroy_file_open_options(handle); }
inline void destroy(duckdb_file_system* handle) { duckdb_destroy_file_system(handle); }
inline void destroy(duckdb_logical_type* handle) { duckdb_destroy_logical_type(handle); }
inline void destroy(duckdb_scalar_function* handle) { duckdb_destroy_scalar_function(handle); }
inline void destroy(duckdb_table_function* handle) { duckdb_destroy_table_function(handle); }
inline void destroy(duckdb_value* handle) { duckdb_destroy_value(handle); }
inline void destroy(duckdb_vector* handle) { duckdb_destroy_vector(handle); }

template <class T>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T handle) : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (handle_ != nullptr) destroy(&handle_);
  }

  T get() const { return handle_; }
  T* out() { return &handle_; }  // for functions that return through a pointer
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  T handle_ = nullptr;
};

using ClientContext = Handle<duckdb_client_context>;
using LogicalType = Handle<duckdb_logical_type>;
using Value = Handle<duckdb_value>;

inline LogicalType logical_type(duckdb_type id) {
  return LogicalType(duckdb_create_logical_type(id));
}

// The text of a string that DuckDB allocated, which is freed.
inline std::string take_text(char* text) {
  std::string copy = text != nullptr ? text : "";
  duckdb_free(text);
  return copy;
}

// A destructor for state that DuckDB keeps for a function.
template <class T>
void delete_state(void* state) {
  delete static_cast<T*>(state);
}

// Messages are text to DuckDB; paths in them need not be.
inline std::string shown(std::string message) {
  if (is_utf8(as_bytes(message.data(), message.size()))) return message;
  for (char& letter : message) {
    if (static_cast<unsigned char>(letter) > 127) letter = '?';
  }
  return message;
}

// Runs `body` and hands what it throws to `report` as text.
template <class Report, class Body>
void guarded(Report report, Body body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
    report("out of memory");
  } catch (const std::exception& error) {
    report(shown(error.what()).c_str());
  } catch (...) {
    report("unknown error");
  }
}

}  // namespace iac::duckdb
