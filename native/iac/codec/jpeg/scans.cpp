#include "iac/codec/jpeg/scans.h"

#include <algorithm>

namespace iac::jpeg {
namespace {

// Each scan goes over the whole image, however few bytes it has. Encoders make about ten.
constexpr int max_scans = 100;
// Of one scan, in an interleaved order (ITU-T T.81 B.2.3).
constexpr int max_blocks = 10;
constexpr int8_t no_bit = -1;

// Of the tables with a bit for each place.
void require(uint8_t places, int place, const char* kind) {
  if (place < 4 && (places >> place & 1) != 0) return;
  throw bad_stream(std::string(kind) + " table " + std::to_string(place) + " was not defined");
}

}  // namespace

Scans::Scans(const Header& header) : header_(header) {
  for (Bits& bits : bits_) bits.fill(no_bit);
}

void Scans::add(Bytes body, const Defined& tables) {
  if (++count_ > max_scans) {
    throw bad_stream("more than " + std::to_string(max_scans) + " scans");
  }
  const size_t components = body.empty() ? 0 : byte_at(body, 0);
  if (components < 1 || components > header_.count || body.size() != 4 + 2 * components) {
    throw bad_stream("scan header is damaged");
  }
  const Bytes last = body.last(3);
  const Band band{byte_at(last, 0), byte_at(last, 1), byte_at(last, 2) >> 4, byte_at(last, 2) & 15};
  check_band(band, components);
  std::array<bool, 3> here{};
  int blocks = 0;
  for (size_t i = 0; i < components; ++i) {
    const size_t which = component(byte_at(body, 1 + 2 * i));
    const uint8_t selectors = byte_at(body, 2 + 2 * i);  // of tables for DC and AC
    if (selectors >> 4 > 3 || (selectors & 15) > 3) throw bad_stream("scan header is damaged");
    const bool again = header_.process != Process::progressive && seen_[which];
    if (here[which] || again) throw bad_stream("a component is in a scan twice");
    here[which] = true;
    check_tables(which, selectors, band, tables);
    if (header_.process == Process::progressive) refine(which, band);
    if (header_.process != Process::progressive || band.first == 0) seen_[which] = true;
    blocks += header_.components[which].horizontal * header_.components[which].vertical;
  }
  if (components > 1 && blocks > max_blocks) throw bad_stream("a scan has too many blocks");
}

bool Scans::complete() const {
  return std::all_of(seen_.begin(), seen_.begin() + header_.count, [](bool seen) { return seen; });
}

size_t Scans::component(uint8_t id) const {
  for (size_t i = 0; i < header_.count; ++i) {
    if (header_.components[i].id == id) return i;
  }
  throw bad_stream("scan of a component that the frame does not have");
}

// B.2.3, table B.3. What sequential decoding does not use may be anything.
void Scans::check_band(const Band& band, size_t components) const {
  if (header_.process == Process::lossless) {
    const bool has_predictor = band.first >= 1 && band.first <= 7;
    if (!has_predictor || band.last != 0 || band.high != 0 || band.low >= header_.precision) {
      throw bad_stream("scan header is damaged");
    }
  }
  if (header_.process != Process::progressive) return;
  const bool is_dc = band.first == 0;
  const bool fits =
      is_dc ? band.last == 0 : band.last >= band.first && band.last < 64 && components == 1;
  const bool follows = band.high == 0 || band.low == band.high - 1;
  if (!fits || !follows || band.low > 13) throw bad_stream("scan header is damaged");
}

// G.1.1.1: a coefficient's first bits come by one scan, each further one by a scan of its own.
void Scans::refine(size_t which, const Band& band) {
  Bits& bits = bits_[which];
  bool follows = band.first == 0 || bits[0] != no_bit;
  for (int i = band.first; i <= band.last; ++i) {
    follows = follows && band.high == std::max<int>(bits[i], 0);
    bits[i] = static_cast<int8_t>(band.low);
  }
  if (!follows) throw bad_stream("scans are missing or not in order");
}

void Scans::check_tables(size_t which, uint8_t selectors, const Band& band,
                         const Defined& tables) const {
  const Process process = header_.process;
  if (process != Process::lossless) {
    require(tables.quantization, header_.components[which].quantization, "quantization");
  }
  if (header_.arithmetic) return;
  const bool all = process == Process::sequential;
  const bool dc = process == Process::lossless || (band.first == 0 && band.high == 0);
  const bool ac = process == Process::progressive && band.first > 0;
  if (all || dc) require(tables.dc, selectors >> 4, "Huffman");
  if (all || ac) require(tables.ac, selectors & 15, "Huffman");
}

}  // namespace iac::jpeg
