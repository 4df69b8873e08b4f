#include "python/source.h"

#include <algorithm>
#include <cerrno>

#include "iac/error.h"

namespace iac::python {
namespace {

class PythonSource final : public Source {
 public:
  PythonSource(py::object read, uint64_t size, std::string identity)
      : Source(size, std::move(identity)), read_(std::move(read)) {}

  ~PythonSource() override {
    const py::gil_scoped_acquire acquire;
    read_ = py::object();
  }

 protected:
  int64_t read_some(uint64_t offset, std::span<const MutableBytes> pieces) const override {
    uint64_t wanted = 0;
    for (const MutableBytes piece : pieces) wanted += piece.size();
    const py::gil_scoped_acquire acquire;
    try {
      const BufferView view(read_(offset, wanted));
      Bytes got = view.bytes().first(std::min<size_t>(view.bytes().size(), wanted));
      const auto count = static_cast<int64_t>(got.size());
      for (const MutableBytes piece : pieces) {
        const Bytes part = got.first(std::min(got.size(), piece.size()));
        std::copy(part.begin(), part.end(), piece.begin());
        got = got.subspan(part.size());
      }
      return count;
    } catch (py::error_already_set& failed) {
      if (!failed.matches(PyExc_Exception)) throw;  // Ctrl-C, say
      throw Error(Error::Kind::system,
                  "cannot read " + std::to_string(wanted) + " bytes at " + std::to_string(offset) +
                      ": " + py::str(failed.value()).cast<std::string>(),
                  EIO);
    }
  }

 private:
  py::object read_;
};

}  // namespace

std::shared_ptr<const Source> make_source(py::object read, uint64_t size, std::string identity) {
  return std::make_shared<PythonSource>(std::move(read), size, std::move(identity));
}

}  // namespace iac::python
