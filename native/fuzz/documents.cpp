// Reads any bytes as the documents of a patient, as both kinds.
#include "iac/documents.h"

#include <cstdlib>

#include "iac/error.h"
#include "iac/utf8.h"

namespace {

using namespace iac;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(Bytes payload, std::string_view text) {
  require(is_utf8(as_bytes(text.data(), text.size())));
  const auto* const first = reinterpret_cast<const char*>(payload.data());
  require(text.data() >= first && text.data() + text.size() <= first + payload.size());
}

void read(Bytes payload, DocumentKind kind) {
  uint64_t size = 0;
  for (const Document& document : parse_documents(payload, kind).documents) {
    check(payload, document.text);
    size += document.text.size();
    if (kind == DocumentKind::text) continue;
    check(payload, document.compressed_text);
    size += document.compressed_text.size();
  }
  require(size <= text_region(payload).size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // In memory of its own, so that reading beyond its end is found.
  const std::vector<std::byte> payload(reinterpret_cast<const std::byte*>(data),
                                       reinterpret_cast<const std::byte*>(data) + size);
  for (const DocumentKind kind : {DocumentKind::text, DocumentKind::pair}) {
    try {
      read(payload, kind);
    } catch (const Error&) {
    }
  }
  return 0;
}
