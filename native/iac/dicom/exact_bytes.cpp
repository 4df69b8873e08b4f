#include "iac/dicom/exact_bytes.h"

#include "iac/error.h"

namespace iac::dicom {

Error ExactBytes::other_size(const std::string& found) const {
  return {Error::Kind::codec, std::string(codec_.name()) + ": record has " + found +
                                  " bytes, the index table says " + describe(image_) +
                                  ", which has " + std::to_string(bytes_)};
}

void ExactBytes::check(Bytes payload) const {
  const SizeHint hint = codec_.decoded_size(payload);
  const bool fits =
      hint.kind == SizeHint::Kind::exact ? hint.bytes == bytes_ : hint.bytes >= bytes_;
  if (!fits) throw other_size(std::to_string(hint.bytes));
}

void ExactBytes::decode(Bytes payload, std::byte* out) const {
  Target target(out, bytes_);  // what does not fit is no such record
  const auto size = codec_.decode(payload, target);
  if (!size) throw other_size("more");
  if (*size != bytes_) throw other_size(std::to_string(*size));
}

}  // namespace iac::dicom
