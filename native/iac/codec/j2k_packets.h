// The packets of HT codestreams (ISO 15444-1 annex B, 15444-15): what the libraries' decoders take
// for granted of them, some by assertions that end the process.
#pragma once

#include "iac/codec/j2k_codestream.h"

namespace iac::j2k {

// Throws Error where bytes follow each other that a tile part never has.
void check_bodies(const Codestream& stream);

// Walks through all packets of a plain codestream, throws Error where a header or the frame of a
// code-block is damaged.
void check_packets(const PlainHt& stream);

}  // namespace iac::j2k
