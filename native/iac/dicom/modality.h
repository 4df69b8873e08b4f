// The modality LUT of an instance (PS3.3 C.11.1): from stored pixel values to those that the
// modality means, Hounsfield units of CT.
#pragma once

#include <cstdint>
#include <vector>

#include "iac/bytes.h"
#include "iac/dicom/header.h"
#include "iac/image.h"

namespace iac::dicom {

class ModalityLut {
 public:
  enum class Kind : uint8_t { none, rescale, table };

  // Of a frame, counted from 0: the table of the Modality LUT Sequence where there is one, else
  // rescale slope and intercept, in the functional groups of the frame or in the data set. Without
  // both values stay what they are. Throws Error when what is there is none, or is not what its VR
  // says.
  ModalityLut(const Header& header, size_t frame);

  Kind kind() const { return kind_; }
  double slope() const { return slope_; }
  double intercept() const { return intercept_; }
  // Of numbers of bits() bits, for pixel values from first() on.
  const std::vector<uint16_t>& table() const { return table_; }
  int first() const { return first_; }
  int bits() const { return bits_; }

  // Writes image.samples() values, computed in double precision. Throws Error for a table over
  // pixels that are no integers.
  void apply(const ImageShape& image, const std::byte* pixels, float* out) const;

 private:
  void read_table(std::string_view item);

  Kind kind_ = Kind::none;
  double slope_ = 1, intercept_ = 0;
  std::vector<uint16_t> table_;
  int first_ = 0, bits_ = 0;
};

}  // namespace iac::dicom
