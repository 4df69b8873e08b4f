// The tables that a JPEG stream has defined so far, which its scans may use.
#pragma once

#include "iac/codec/jpeg/segments.h"

namespace iac::jpeg {

struct Defined {
  // A bit for each of four places.
  uint8_t quantization = 0, dc = 0, ac = 0;
  int largest_dc_symbol = 0;

  // Takes note of a segment of tables (ITU-T T.81 B.2.4), passes over others. Throws Error(codec)
  // for one that is damaged.
  void add(const Segment& segment);

 private:
  void add_quantization(Bytes body);
  void add_huffman(Bytes body);
};

}  // namespace iac::jpeg
