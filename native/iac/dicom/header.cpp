#include "iac/dicom/header.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "iac/base64.h"
#include "iac/error.h"

namespace iac::dicom {
namespace {

using nlohmann::json;

// Of JSON that trees are made of, which take many times its size.
constexpr size_t max_parsed_bytes = size_t{16} << 20;
constexpr size_t key_bytes = 12;  // "00080060": and a comma or bracket

Error bad(const std::string& reason) { return {Error::Kind::pack, reason}; }

std::string text_member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string raw_base64(const json& entry) {
  const auto raw = entry.find("raw_base64");
  if (raw == entry.end() || !raw->is_string()) throw bad("an errors entry has no raw_base64");
  return raw->get<std::string>();
}

// The text of numbers that an entry of `errors` keeps; nothing where it keeps other bytes.
std::optional<std::string> number_text(const json& entry) {
  const std::string vr = text_member(entry, "stored_vr");
  if (vr != "DS" && vr != "IS") return std::nullopt;
  const auto value = entry.find("value");
  if (value != entry.end() && value->is_string()) return value->get<std::string>();
  const auto bytes = from_base64(raw_base64(entry));
  if (!bytes) throw bad("the raw_base64 of an errors entry is not base64");
  const auto is_ascii = [](std::byte letter) { return letter < std::byte{0x80}; };
  if (!std::all_of(bytes->begin(), bytes->end(), is_ascii)) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

// The element that an entry of `errors` keeps.
json restored_element(const json& entry) {
  const auto text = number_text(entry);
  if (!text) return {{"InlineBinary", raw_base64(entry)}, {"vr", "UN"}};
  json values = json::array();
  for (size_t begin = 0; begin <= text->size();) {
    const size_t end = std::min(text->find('\\', begin), text->size());
    values.push_back(text->substr(begin, end - begin));
    begin = end + 1;
  }
  return {{"Value", std::move(values)}, {"vr", text_member(entry, "stored_vr")}};
}

uint32_t tag_of(const json& step) {
  uint32_t tag = 0;
  const std::string text = step.is_string() ? step.get<std::string>() : std::string();
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), tag, 16);
  if (text.size() != 8 || failed != std::errc{} || end != text.data() + text.size()) {
    throw bad("the path of an errors entry has a tag that is none");
  }
  return tag;
}

// A path that place_in() has taken.
std::vector<uint32_t> steps_of(const json& path) {
  std::vector<uint32_t> steps;
  for (const json& step : path) {
    steps.push_back(step.is_string() ? tag_of(step) : step.get<uint32_t>());
  }
  return steps;
}

// The element at `step` of the path in the items of a sequence, to be put there.
json& place_in(json& sequence, const json& path, size_t step) {
  json* element = &sequence;
  for (; step + 1 < path.size(); step += 2) {
    const json& item = path[step];
    const auto values = element->is_object() ? element->find("Value") : element->end();
    const bool there = values != element->end() && values->is_array() &&
                       item.is_number_unsigned() && item.get<uint64_t>() < values->size() &&
                       (*values)[item.get<size_t>()].is_object();
    if (!there) throw bad("the path of an errors entry leads nowhere");
    element = &(*values)[item.get<size_t>()][tag_text(tag_of(path[step + 1]))];
  }
  return *element;
}

}  // namespace

Header::Header(std::shared_ptr<const HeaderText> series, HeaderText own)
    : series_(std::move(series)), delta_(std::make_unique<const HeaderText>(std::move(own))) {
  own_.assign(delta_->elements().begin(), delta_->elements().end());
  if (!delta_->errors().empty()) restore(delta_->errors());
}

void Header::restore(std::string_view errors) {
  size_t parsed = errors.size();
  const auto parse = [&](std::string_view text) {
    parsed += text.size();
    if (parsed > max_parsed_bytes) throw bad("its errors and their sequences are too large");
    try {
      return json::parse(text);
    } catch (const json::exception&) {  // a number beyond those of doubles
      throw bad("its errors or their sequences cannot be read");
    }
  };
  std::map<uint32_t, json> changed;
  for (const json& entry : parse(errors)) {
    if (!entry.is_object()) throw bad("an errors entry is not a JSON object");
    const auto path = entry.find("path");
    if (path == entry.end() || !path->is_array() || path->size() % 2 == 0) {
      throw bad("an errors entry has no path of tags and items");
    }
    const uint32_t tag = tag_of(path->front());
    const auto [element, is_new] = changed.try_emplace(tag);
    const auto before = is_new && path->size() > 1 ? find(tag) : std::nullopt;
    if (before) element->second = parse(*before);
    place_in(element->second, *path, 1) = restored_element(entry);
    if (text_member(entry, "scope") != "file_meta") broken_.push_back(steps_of(*path));
  }
  for (const auto& [tag, element] : changed) {
    restored_.push_back(element.dump());
    std::erase_if(own_, [tag = tag](const Element& replaced) { return replaced.tag == tag; });
    own_.push_back({tag, restored_.back()});
  }
  std::sort(own_.begin(), own_.end(),
            [](const Element& a, const Element& b) { return a.tag < b.tag; });
}

std::optional<std::string_view> Header::find(uint32_t tag) const {
  if (const auto own = find_element(own_, tag)) return own;
  return find_element(series_->elements(), tag);
}

template <class Visit>
void Header::for_each(Visit visit) const {
  auto own = own_.begin();
  for (const Element& shared : series_->elements()) {
    for (; own != own_.end() && own->tag < shared.tag; ++own) visit(*own);
    if (own == own_.end() || own->tag != shared.tag) visit(shared);
  }
  for (; own != own_.end(); ++own) visit(*own);
}

size_t Header::json_size() const {
  size_t size = 1, count = 0;
  for_each([&](const Element& element) {
    size += key_bytes + element.json.size();
    ++count;
  });
  return count == 0 ? 2 : size;
}

void Header::write_json(char* out) const {
  char separator = '{';
  for_each([&](const Element& element) {
    constexpr char digits[] = "0123456789ABCDEF";
    *out++ = separator;
    *out++ = '"';
    for (int shift = 28; shift >= 0; shift -= 4) *out++ = digits[element.tag >> shift & 15];
    *out++ = '"';
    *out++ = ':';
    std::memcpy(out, element.json.data(), element.json.size());
    out += element.json.size();
    separator = ',';
  });
  if (separator == '{') *out++ = '{';
  *out = '}';
}

}  // namespace iac::dicom
