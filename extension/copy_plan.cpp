#include "copy_plan.h"

#include <iac/error.h>

#include <algorithm>

#include "types.h"
#include "values.h"

namespace iac::duckdb {
namespace {

constexpr const char* default_codec = "zstd";
constexpr const char* default_payload_type = "records";
constexpr const char* payload_name = "payload";
constexpr const char* record_name = "record";
// Columns that number slides, the first that is there.
constexpr const char* key_names[] = {"slide_idx", "series_idx"};
// Columns of the slide table unless others are named.
constexpr const char* slide_names[] = {"slide_id", "patient_id", "specimen_id", "study_uid",
                                       "series_uid"};
constexpr const char* layout_names[] = {"offset", "length", "crc32"};

Error refused(const std::string& reason) {
  return {Error::Kind::argument, "COPY to iac: " + reason};
}

struct Input {
  std::string name;
  LogicalType type;
};

std::vector<Input> struct_fields(duckdb_logical_type type) {
  std::vector<Input> inputs;
  for (idx_t i = 0; i < duckdb_struct_type_child_count(type); ++i) {
    inputs.push_back({take_text(duckdb_struct_type_child_name(type, i)),
                      LogicalType(duckdb_struct_type_child_type(type, i))});
  }
  return inputs;
}

std::vector<Input> named_columns(std::vector<LogicalType> types,
                                 const std::vector<std::string>& names) {
  if (names.size() != types.size()) {
    throw refused("COLUMNS has " + std::to_string(names.size()) + " names for " +
                  std::to_string(types.size()) + " columns");
  }
  std::vector<Input> inputs;
  for (size_t i = 0; i < types.size(); ++i) {
    inputs.push_back({names[i], std::move(types[i])});
  }
  return inputs;
}

// DuckDB tells a COPY the types of its columns but not their names, which the fields of a struct
// have.
std::vector<Input> inputs_of(std::vector<LogicalType> types, const CopyOptions& options,
                             bool& one_struct) {
  one_struct = !options.columns && types.size() == 1 &&
               duckdb_get_type_id(types.front().get()) == DUCKDB_TYPE_STRUCT;
  if (one_struct) return struct_fields(types.front().get());
  if (options.columns) return named_columns(std::move(types), *options.columns);
  throw refused(
      "DuckDB does not say how the columns are called: name them with COLUMNS ['...', ...], or "
      "copy one struct: COPY (SELECT t FROM (SELECT ...) AS t) TO ...");
}

std::optional<idx_t> find(const std::vector<Input>& inputs, const std::string& name) {
  const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const Input& input) {
    return lower_case(input.name) == lower_case(name);
  });
  if (found == inputs.end()) return std::nullopt;
  return static_cast<idx_t>(found - inputs.begin());
}

void check_names(const std::vector<Input>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = inputs[i].name;
    if (name.empty()) throw refused("column " + std::to_string(i + 1) + " has no name");
    if (*find(inputs, name) != i) throw refused("two columns are called '" + name + "'");
  }
  for (const char* name : layout_names) {
    if (!find(inputs, name)) continue;
    throw refused(std::string("a column is called '") + name +
                  "', which is where the pack says how records are stored: leave it out, or give "
                  "it another name");
  }
}

bool is_text_or_enum(duckdb_type type) {
  return type == DUCKDB_TYPE_VARCHAR || type == DUCKDB_TYPE_ENUM;
}

ImageFields image_fields(duckdb_logical_type type, const Codec& codec) {
  const auto wrong = [&](const std::string& problem) {
    return refused("codec " + std::string(codec.name()) +
                   " is one of images, so the payload must be a STRUCT(height, width, channels "
                   "INTEGER, dtype VARCHAR, data BLOB) as iac_image gives it: " +
                   problem);
  };
  if (duckdb_get_type_id(type) != DUCKDB_TYPE_STRUCT) throw wrong("this is no struct");
  const std::vector<Input> inputs = struct_fields(type);
  ImageFields fields;
  constexpr const char* names[] = {"height", "width", "channels", "dtype", "data"};
  for (size_t i = 0; i < std::size(names); ++i) {
    const auto found = find(inputs, names[i]);
    if (!found) throw wrong(std::string("it has no field ") + names[i]);
    const LogicalType& field = inputs[*found].type;
    const duckdb_type id = duckdb_get_type_id(field.get());
    const bool fits = i < ImageFields::dtype    ? is_integer(id)
                      : i == ImageFields::dtype ? is_text_or_enum(id)
                                                : id == DUCKDB_TYPE_BLOB;
    if (!fits) throw wrong(std::string("its field ") + names[i] + " has another type");
    fields.parts[i] = {*found, id, {}};
    if (id != DUCKDB_TYPE_ENUM) continue;
    fields.parts[i].type = duckdb_enum_internal_type(field.get());
    for (uint32_t k = 0; k < duckdb_enum_dictionary_size(field.get()); ++k) {
      fields.parts[i].texts.push_back(take_text(duckdb_enum_dictionary_value(field.get(), k)));
    }
  }
  return fields;
}

// What is no option of COPY itself is a parameter of the codec, misspelt options among them.
std::shared_ptr<const Codec> encoder(const CopyOptions& options) {
  try {
    return make_codec(options.codec.value_or(default_codec), options.codec_params);
  } catch (const Error& error) {
    throw refused(error.reason() +
                  "; options are CODEC, PAYLOAD_TYPE, COLUMNS, SLIDE_COLUMNS and the codec's own");
  }
}

void plan_payload(CopyPlan& plan, const Input& input, const CopyOptions& options) {
  const duckdb_type id = duckdb_get_type_id(input.type.get());
  if (id == DUCKDB_TYPE_STRUCT && !options.codec) {
    throw refused(
        "the payload is a struct: name a CODEC of images, such as 'jxl' (LOSSLESS true keeps every "
        "pixel)");
  }
  plan.codec = encoder(options);
  if (std::dynamic_pointer_cast<const ImageCodec>(plan.codec)) {
    plan.image = image_fields(input.type.get(), *plan.codec);
  } else if (id != DUCKDB_TYPE_BLOB && id != DUCKDB_TYPE_VARCHAR) {
    throw refused("codec " + std::string(plan.codec->name()) +
                  " is one of bytes, so the payload must be a BLOB or a VARCHAR");
  }
}

void plan_record(CopyPlan& plan, const Input& input, const CopyOptions& options) {
  plan.reference.emplace(input.type.get());
  if (options.has_codec_params()) {
    throw refused("records are copied as they are stored, so no parameters of a codec apply (" +
                  options.codec_params +
                  "): to encode them anew give a payload, iac_payload(record) or "
                  "iac_image(record)");
  }
  if (options.codec) plan.codec = make_codec(*options.codec, "{}");
}

StoredColumn stored_column(const Input& input, idx_t position) {
  StoredColumn column;
  column.name = input.name;
  column.position = position;
  ArrowSchemaInit(column.field.get());
  try {
    column.type = stored_type(input.type.get(), *column.field.get());
  } catch (const Error& error) {
    throw refused("column '" + input.name + "': " + error.reason());
  }
  require(ArrowSchemaSetName(column.field.get(), input.name.c_str()));
  return column;
}

// Which columns go to the slide table.
std::vector<bool> slide_columns(const std::vector<Input>& inputs, const CopyOptions& options,
                                idx_t payload) {
  std::vector<bool> chosen(inputs.size(), false);
  if (!options.slide_columns) {
    for (const char* name : slide_names) {
      if (const auto found = find(inputs, name)) chosen[*found] = true;
    }
    return chosen;
  }
  for (const std::string& name : *options.slide_columns) {
    const auto found = find(inputs, name);
    if (!found) throw refused("SLIDE_COLUMNS names '" + name + "', which is no column");
    if (*found == payload) throw refused("the column '" + name + "' cannot be a slide column");
    chosen[*found] = true;
  }
  return chosen;
}

void plan_tables(CopyPlan& plan, std::vector<Input>& inputs, const CopyOptions& options) {
  const bool no_slides = options.slide_columns && options.slide_columns->empty();
  std::optional<idx_t> key;
  for (const char* name : key_names) {
    if (key || no_slides) break;
    key = find(inputs, name);
    if (key) inputs[*key].name = name;  // readers know it in this spelling only
  }
  if (key && !is_integer(duckdb_get_type_id(inputs[*key].type.get()))) {
    throw refused("the column '" + inputs[*key].name + "' numbers slides, so it must be integers");
  }
  const std::vector<bool> chosen = slide_columns(inputs, options, plan.payload);
  if (key) plan.slides.push_back(stored_column(inputs[*key], *key));
  for (idx_t i = 0; i < inputs.size(); ++i) {
    if (i == plan.payload) continue;
    const bool is_key = key == i;
    if (is_key) plan.key = plan.index.size();
    if (is_key || !chosen[i]) {
      plan.index.push_back(stored_column(inputs[i], i));
    } else {
      plan.slides.push_back(stored_column(inputs[i], i));
    }
  }
  plan.numbers_slides = !key && !plan.slides.empty();
}

}  // namespace

CopyPlan::CopyPlan(std::vector<LogicalType> types, const CopyOptions& options)
    : width(types.size()), payload_type(options.payload_type.value_or(default_payload_type)) {
  std::vector<Input> inputs = inputs_of(std::move(types), options, one_struct);
  check_names(inputs);
  const auto payload_at = find(inputs, payload_name), record_at = find(inputs, record_name);
  if (payload_at && record_at) {
    throw refused(
        "there is a payload, to be encoded, and a record, to be copied as it is stored: leave one "
        "of them out");
  }
  if (!payload_at && !record_at) {
    throw refused(
        "no column is called payload (what is to be encoded) or record (references to "
        "what is to be copied)");
  }
  payload = payload_at ? *payload_at : *record_at;
  if (payload_at) {
    plan_payload(*this, inputs[payload], options);
  } else {
    plan_record(*this, inputs[payload], options);
  }
  plan_tables(*this, inputs, options);
}

}  // namespace iac::duckdb
