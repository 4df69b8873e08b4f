// The scans of a JPEG stream, one header after the other: whether they bring the whole image, with
// tables that are there.
#pragma once

#include <array>

#include "iac/codec/jpeg/defined.h"
#include "iac/codec/jpeg/stream.h"

namespace iac::jpeg {

class Scans {
 public:
  explicit Scans(const Header& header);

  // The next scan, by the body of its SOS segment, and the tables that are defined by then. Throws
  // Error(codec) for one that no decoder takes.
  void add(Bytes body, const Defined& tables);

  // Whether each component has had a scan.
  bool complete() const;

 private:
  // A scan's coefficients, from which on to which, and their bits, before it and after it.
  struct Band {
    int first, last, high, low;
  };
  // The last bit that a component's coefficients have, none before the first scan.
  using Bits = std::array<int8_t, 64>;

  size_t component(uint8_t id) const;
  void check_band(const Band& band, size_t components) const;
  void refine(size_t which, const Band& band);
  void check_tables(size_t which, uint8_t selectors, const Band& band, const Defined& tables) const;

  const Header& header_;
  std::array<bool, 3> seen_{};
  std::array<Bits, 3> bits_;
  int count_ = 0;
};

}  // namespace iac::jpeg
