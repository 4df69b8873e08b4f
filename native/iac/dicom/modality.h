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
  // Of a frame, counted from 0: the table of the Modality LUT Sequence where there is one, else
  // rescale slope and intercept, which the functional groups of the frame may have too; without
  // both values stay what they are. Throws Error when what is there is none.
  ModalityLut(const Header& header, size_t frame);

  // Writes image.samples() values, computed in double precision. Throws Error for a table over
  // pixels that are no integers.
  void apply(const ImageShape& image, const std::byte* pixels, float* out) const;

 private:
  void read_table(std::string_view item);

  double slope_ = 1, intercept_ = 0;
  std::vector<uint16_t> table_;  // empty: there is none
  double first_ = 0;             // the pixel value of table_[0]
};

}  // namespace iac::dicom
