#include <algorithm>
#include <array>

#include "iac/codec/codecs.h"
#include "iac/error.h"

namespace iac {
namespace {

struct Entry {
  std::string_view name;
  std::shared_ptr<const Codec> (*make)(Params&);
  std::vector<std::string_view> decoding;  // the parameters that decoding needs
};

const std::vector<Entry>& codecs() {
  static const std::vector<Entry> all{
      {"none", make_none, {}},
      {"zstd", make_zstd, {}},
      {"brotli", make_brotli, {}},
      {"jpegls", make_jpegls, {}},
      {"jpeg2000", make_jpeg2000, {"profile", "encoded_color_space"}},
      {"jpeg", make_jpeg, {"tables_base64", "encoded_color_space"}},
      {"jxl", make_jxl, {}},
  };
  return all;
}

const Entry& find(std::string_view name) {
  const auto found = std::find_if(codecs().begin(), codecs().end(),
                                  [&](const Entry& entry) { return entry.name == name; });
  if (found != codecs().end()) return *found;
  std::string known;
  for (const Entry& entry : codecs()) {
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw Error(Error::Kind::codec,
              "unknown codec: '" + std::string(name) + "', this build has " + known);
}

}  // namespace

std::shared_ptr<const Codec> make_codec(std::string_view name, std::string_view params) {
  const Entry& entry = find(name);
  Params given(name, params);
  auto codec = entry.make(given);
  given.finish();
  return codec;
}

std::shared_ptr<const Codec> make_decoder(std::string_view name, std::string_view params) {
  const Entry& entry = find(name);
  try {
    Params given(name, entry.decoding.empty() ? "{}" : params);
    given.keep(entry.decoding);
    return entry.make(given);
  } catch (const Error& error) {  // of what is stored, not of what the caller asks for
    throw Error(Error::Kind::codec, error.reason());
  }
}

}  // namespace iac
