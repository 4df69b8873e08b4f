#include "python/source.h"

#include <algorithm>
#include <cerrno>

#include "iac/error.h"

namespace iac::python {
namespace {

// Why it failed, without the file's name, which the error gets anyway.
std::string reason_of(const py::object& failed) {
  const py::object reason = py::getattr(failed, "strerror", py::none());
  if (!reason.is_none()) return py::str(reason).cast<std::string>();
  auto text = py::str(failed).cast<std::string>();
  const py::object pack = py::getattr(failed, "pack", py::none());
  if (pack.is_none()) return text;
  const std::string prefix = py::str(pack).cast<std::string>() + ": ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

Error error_of(const py::error_already_set& failed) {
  const std::string reason = reason_of(failed.value());
  if (failed.matches(PyExc_FileNotFoundError)) return {Error::Kind::not_found, reason, ENOENT};
  if (failed.matches(PyExc_PermissionError)) return {Error::Kind::system, reason, EACCES};
  if (failed.matches(PyExc_TimeoutError)) return {Error::Kind::system, reason, ETIMEDOUT};
  if (failed.matches(PyExc_MemoryError)) throw std::bad_alloc();
  return {Error::Kind::system, reason, EIO};
}

template <class Call>
auto ask(Call call) {
  const py::gil_scoped_acquire acquire;
  try {
    return call();
  } catch (py::error_already_set& failed) {
    if (!failed.matches(PyExc_Exception)) throw;  // Ctrl-C, say
    throw error_of(failed);
  }
}

class PythonSource final : public RemoteSource {
 public:
  PythonSource(py::object read, py::object ask_version, uint64_t size, std::string version,
               ReadStyle style)
      : RemoteSource(size, std::move(version), style),
        read_(std::move(read)),
        ask_version_(std::move(ask_version)),
        tells_version_(!ask_version_.is_none()) {}

  ~PythonSource() override {
    const py::gil_scoped_acquire acquire;
    read_ = py::object();
    ask_version_ = py::object();
  }

 protected:
  uint64_t fetch(uint64_t offset, MutableBytes out) const override {
    return ask([&] {
      const BufferView view(read_(offset, out.size()));
      const Bytes got = view.bytes();
      std::copy_n(got.begin(), std::min(got.size(), out.size()), out.begin());
      return uint64_t{got.size()};
    });
  }

  std::string current_version() const override {
    if (!tells_version_) return RemoteSource::current_version();
    return ask([&] { return ask_version_().cast<std::string>(); });
  }

 private:
  py::object read_, ask_version_;
  bool tells_version_;
};

}  // namespace

std::shared_ptr<RemoteSource> make_source(py::object read, py::object ask_version, uint64_t size,
                                          std::string version, ReadStyle style) {
  return std::make_shared<PythonSource>(std::move(read), std::move(ask_version), size,
                                        std::move(version), style);
}

}  // namespace iac::python
