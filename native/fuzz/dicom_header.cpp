// Takes any bytes as the headers of a DICOM instance: the template of its series, a zero byte, and
// its own. What is taken must come out as JSON.

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "iac/dicom/header.h"
#include "iac/dicom/modality.h"
#include "iac/dicom/value.h"
#include "iac/error.h"

using namespace iac;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

dicom::HeaderText header_text(std::string_view text) {
  auto bytes = std::make_unique_for_overwrite<std::byte[]>(text.size());
  std::memcpy(bytes.get(), text.data(), text.size());
  return {std::move(bytes), text.size()};
}

void use(const dicom::Header& header) {
  std::string json(header.json_size(), '\0');
  header.write_json(json.data());
  nlohmann::json model;
  try {
    model = nlohmann::json::parse(json);
  } catch (const nlohmann::json::out_of_range&) {  // a number beyond those of doubles
    return;
  }
  for (const auto& [key, element] : model.items()) {
    const auto tag = static_cast<uint32_t>(std::stoul(key, nullptr, 16));
    require(header.find(tag).has_value());
    try {
      const auto text = dicom::value_text(*header.find(tag));
      require(!text || !text->empty());
      dicom::value_bytes(*header.find(tag));
      dicom::item_of(*header.find(tag), 0);
    } catch (const Error&) {
    }
  }
  const std::byte pixels[8] = {std::byte{1}, std::byte{255}};
  float values[8];
  dicom::ModalityLut(header, 1).apply({2, 2, 1, PixelType::int16}, pixels, values);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(text.find('\0'), size);
  try {
    auto series = std::make_shared<const dicom::HeaderText>(header_text(text.substr(0, end)));
    use({std::move(series), header_text(text.substr(std::min(end + 1, size)))});
  } catch (const Error&) {
  }
  return 0;
}
