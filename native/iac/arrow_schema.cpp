#include "iac/arrow_schema.h"

#include <nanoarrow/ipc/flatcc_generated.h>

#include <string>
#include <string_view>

#include "iac/error.h"
#include "iac/utf8.h"

#define FB(name) FLATBUFFERS_WRAP_NAMESPACE(org_apache_arrow_flatbuf, name)

namespace iac {
namespace {

// A flatbuffer may name one table as a child many times, so a few bytes can describe 2^100 fields,
// or a million that share one long name. Writers do not: their texts fit into the message.
constexpr int max_fields = 100000;
constexpr uint64_t spare_text_bytes = uint64_t{16} << 20;

Error bad(const std::string& reason) { return {Error::Kind::pack, "Arrow schema: " + reason}; }

void check(ArrowErrorCode code) {
  if (code != NANOARROW_OK) throw bad("out of memory or invalid");
}

std::string int_format(FB(Int_table_t) type) {
  const bool is_signed = FB(Int_is_signed_get(type)) != 0;
  switch (FB(Int_bitWidth_get(type))) {
    case 8:
      return is_signed ? "c" : "C";
    case 16:
      return is_signed ? "s" : "S";
    case 32:
      return is_signed ? "i" : "I";
    case 64:
      return is_signed ? "l" : "L";
    default:
      throw bad("unknown integer width");
  }
}

std::string unit_letter(int unit) {
  static constexpr const char* letters[] = {"s", "m", "u", "n"};
  if (unit < 0 || unit > 3) throw bad("unknown time unit");
  return letters[unit];
}

std::string union_format(FB(Union_table_t) type, size_t children) {
  std::string format = FB(Union_mode(type)) == FB(UnionMode_Dense) ? "+ud:" : "+us:";
  const auto ids = FB(Union_typeIds(type));
  if (children > 127 || (ids != nullptr && flatbuffers_int32_vec_len(ids) != children)) {
    throw bad("union with mismatched type ids");
  }
  for (size_t i = 0; i < children; ++i) {
    const auto id = ids != nullptr ? flatbuffers_int32_vec_at(ids, i) : static_cast<int32_t>(i);
    if (id < 0 || id > 127) throw bad("union type id outside 0 to 127");
    format += (i == 0 ? "" : ",") + std::to_string(id);
  }
  return format;
}

std::string decimal_format(FB(Decimal_table_t) type) {
  const int bits = FB(Decimal_bitWidth(type));
  return "d:" + std::to_string(FB(Decimal_precision(type))) + "," +
         std::to_string(FB(Decimal_scale(type))) + (bits == 128 ? "" : "," + std::to_string(bits));
}

// The format string of the C data interface for the field's type.
std::string format_of(FB(Field_table_t) field, size_t children) {
  const auto type = FB(Field_type_get(field));
  // The verifier lets a union have a type and no value.
  if (type == nullptr) throw bad("field without a type");
  const auto expect_children = [&](size_t expected, const char* format) {
    if (children != expected) throw bad("nested type with a wrong number of children");
    return format;
  };
  switch (FB(Field_type_type(field))) {
    case FB(Type_Null):
      return "n";
    case FB(Type_Bool):
      return "b";
    case FB(Type_Int):
      return int_format(static_cast<FB(Int_table_t)>(type));
    case FB(Type_FloatingPoint):
      switch (FB(FloatingPoint_precision(static_cast<FB(FloatingPoint_table_t)>(type)))) {
        case FB(Precision_HALF):
          return "e";
        case FB(Precision_SINGLE):
          return "f";
        case FB(Precision_DOUBLE):
          return "g";
        default:
          throw bad("unknown floating point precision");
      }
    case FB(Type_Decimal):
      return decimal_format(static_cast<FB(Decimal_table_t)>(type));
    case FB(Type_Binary):
      return "z";
    case FB(Type_LargeBinary):
      return "Z";
    case FB(Type_BinaryView):
      return "vz";
    case FB(Type_Utf8):
      return "u";
    case FB(Type_LargeUtf8):
      return "U";
    case FB(Type_Utf8View):
      return "vu";
    case FB(Type_FixedSizeBinary): {
      const auto binary = static_cast<FB(FixedSizeBinary_table_t)>(type);
      return "w:" + std::to_string(FB(FixedSizeBinary_byteWidth(binary)));
    }
    case FB(Type_Date):
      return FB(Date_unit(static_cast<FB(Date_table_t)>(type))) == FB(DateUnit_DAY) ? "tdD" : "tdm";
    case FB(Type_Time): {
      const auto time = static_cast<FB(Time_table_t)>(type);
      const int unit = FB(Time_unit(time));
      if (FB(Time_bitWidth(time)) != (unit <= 1 ? 32 : 64)) throw bad("time of a wrong width");
      return "tt" + unit_letter(unit);
    }
    case FB(Type_Timestamp): {
      const auto timestamp = static_cast<FB(Timestamp_table_t)>(type);
      const char* zone = FB(Timestamp_timezone(timestamp));
      return "ts" + unit_letter(FB(Timestamp_unit(timestamp))) + ":" +
             (zone != nullptr ? zone : "");
    }
    case FB(Type_Duration):
      return "tD" + unit_letter(FB(Duration_unit(static_cast<FB(Duration_table_t)>(type))));
    case FB(Type_Interval):
      switch (FB(Interval_unit(static_cast<FB(Interval_table_t)>(type)))) {
        case FB(IntervalUnit_YEAR_MONTH):
          return "tiM";
        case FB(IntervalUnit_DAY_TIME):
          return "tiD";
        case FB(IntervalUnit_MONTH_DAY_NANO):
          return "tin";
        default:
          throw bad("unknown interval unit");
      }
    case FB(Type_Struct_):
      return "+s";
    case FB(Type_List):
      return expect_children(1, "+l");
    case FB(Type_LargeList):
      return expect_children(1, "+L");
    case FB(Type_ListView):
      return expect_children(1, "+vl");
    case FB(Type_LargeListView):
      return expect_children(1, "+vL");
    case FB(Type_Map):
      return expect_children(1, "+m");
    case FB(Type_RunEndEncoded):
      return expect_children(2, "+r");
    case FB(Type_FixedSizeList): {
      const auto list = static_cast<FB(FixedSizeList_table_t)>(type);
      return expect_children(1, "+w:") + std::to_string(FB(FixedSizeList_listSize(list)));
    }
    case FB(Type_Union):
      return union_format(static_cast<FB(Union_table_t)>(type), children);
    default:
      throw bad("unknown type");
  }
}

// Whether what is valid as values of one is valid as values of the other.
bool same_type(const ArrowSchema& a, const ArrowSchema& b) {
  if (std::string_view(a.format) != b.format || a.n_children != b.n_children ||
      (a.dictionary == nullptr) != (b.dictionary == nullptr)) {
    return false;
  }
  for (int64_t i = 0; i < a.n_children; ++i) {
    if (!same_type(*a.children[i], *b.children[i])) return false;
  }
  return a.dictionary == nullptr || same_type(*a.dictionary, *b.dictionary);
}

// Fields of one dictionary id read the same dictionary.
void check_dictionaries(const TableSchema& schema) {
  std::unordered_map<int64_t, const ArrowSchema*> first_of;
  for (const auto& [field, id] : schema.dictionary_ids) {
    const auto first = first_of.emplace(id, field).first->second;
    if (!same_type(*first->dictionary, *field->dictionary)) {
      throw bad("two types for one dictionary");
    }
  }
}

class Decoder {
 public:
  Decoder(TableSchema& out, uint64_t message_bytes)
      : out_(out), text_left_(message_bytes + spare_text_bytes) {}

  void fields(ArrowSchema* parent, FB(Field_vec_t) fields) {
    const size_t count = FB(Field_vec_len(fields));
    check(ArrowSchemaAllocateChildren(parent, static_cast<int64_t>(count)));
    for (size_t i = 0; i < count; ++i) field(parent->children[i], FB(Field_vec_at(fields, i)));
  }

  void metadata(ArrowSchema* schema, FB(KeyValue_vec_t) pairs) {
    const size_t count = FB(KeyValue_vec_len(pairs));
    if (count == 0) return;
    nanoarrow::UniqueBuffer buffer;
    check(ArrowMetadataBuilderInit(buffer.get(), nullptr));
    for (size_t i = 0; i < count; ++i) {
      const auto pair = FB(KeyValue_vec_at(pairs, i));
      const auto text = [this](flatbuffers_string_t string) {
        if (string == nullptr) return ArrowStringView{"", 0};
        spend(flatbuffers_string_len(string));
        return ArrowStringView{string, static_cast<int64_t>(flatbuffers_string_len(string))};
      };
      check(ArrowMetadataBuilderAppend(buffer.get(), text(FB(KeyValue_key(pair))),
                                       text(FB(KeyValue_value(pair)))));
    }
    check(ArrowSchemaSetMetadata(schema, reinterpret_cast<const char*>(buffer->data)));
  }

 private:
  void spend(uint64_t text) {
    if (text > text_left_) throw bad("more text than its message holds");
    text_left_ -= text;
  }

  void field(ArrowSchema* schema, FB(Field_table_t) field) {
    if (++count_ > max_fields) throw bad("more than 100000 fields");
    const auto children = FB(Field_children(field));
    const auto dictionary = FB(Field_dictionary(field));
    const auto name = FB(Field_name(field));
    if (name != nullptr && !is_utf8(as_bytes(name, flatbuffers_string_len(name)))) {
      throw bad("column name is not UTF-8");
    }
    // Names end at a NUL in the C data interface.
    if (name != nullptr && std::strlen(name) != flatbuffers_string_len(name)) {
      throw bad("column name '" + std::string(name) + "' goes on behind a NUL");
    }
    ArrowSchemaInit(schema);
    check(ArrowSchemaSetName(schema, name != nullptr ? name : ""));
    metadata(schema, FB(Field_custom_metadata(field)));

    // A dictionary-encoded field is its index type, the type in the message is its dictionary's.
    ArrowSchema* typed = schema;
    if (dictionary != nullptr) {
      const auto index = FB(DictionaryEncoding_indexType(dictionary));
      check(ArrowSchemaSetFormat(schema, index != nullptr ? int_format(index).c_str() : "i"));
      check(ArrowSchemaAllocateDictionary(schema));
      typed = schema->dictionary;
      ArrowSchemaInit(typed);
      check(ArrowSchemaSetName(typed, ""));
      out_.dictionary_ids[schema] = FB(DictionaryEncoding_id(dictionary));
      if (FB(DictionaryEncoding_isOrdered(dictionary)))
        schema->flags |= ARROW_FLAG_DICTIONARY_ORDERED;
    }
    const std::string format = format_of(field, FB(Field_vec_len(children)));
    spend(format.size() + (name != nullptr ? flatbuffers_string_len(name) : 0));
    check(ArrowSchemaSetFormat(typed, format.c_str()));
    fields(typed, children);

    typed->flags |= ARROW_FLAG_NULLABLE;
    if (!FB(Field_nullable(field))) schema->flags &= ~ARROW_FLAG_NULLABLE;
    if (FB(Field_type_type(field)) == FB(Type_Map) &&
        FB(Map_keysSorted(static_cast<FB(Map_table_t)>(FB(Field_type_get(field)))))) {
      typed->flags |= ARROW_FLAG_MAP_KEYS_SORTED;
    }
  }

  TableSchema& out_;
  uint64_t text_left_;
  int count_ = 0;
};

}  // namespace

TableSchema TableSchema::decode(const void* table, uint64_t message_bytes) {
  const auto schema = static_cast<FB(Schema_table_t)>(table);
  if (schema == nullptr) throw bad("empty message");
  if (FB(Schema_endianness(schema)) != FB(Endianness_Little)) {
    throw bad("the table was written big-endian, rewrite it on a little-endian machine");
  }
  TableSchema out;
  ArrowSchemaInit(out.root.get());
  check(ArrowSchemaSetFormat(out.root.get(), "+s"));
  check(ArrowSchemaSetName(out.root.get(), ""));
  out.root->flags = 0;
  Decoder decoder(out, message_bytes);
  decoder.fields(out.root.get(), FB(Schema_fields(schema)));
  decoder.metadata(out.root.get(), FB(Schema_custom_metadata(schema)));
  check_dictionaries(out);

  // Catches what single fields cannot: formats nanoarrow refuses, maps of a wrong shape.
  nanoarrow::UniqueArrayView view;
  ArrowError error;
  if (ArrowArrayViewInitFromSchema(view.get(), out.root.get(), &error) != NANOARROW_OK) {
    throw bad(error.message);
  }
  return out;
}

}  // namespace iac
