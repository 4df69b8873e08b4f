#include "copy_payloads.h"

#include <iac/checksum.h>
#include <iac/error.h>
#include <iac/workers.h>

#include <algorithm>

#include "values.h"

namespace iac::duckdb {
namespace {

// Payloads wait until they are so many, or so many bytes: enough for every thread, and no more than
// the user may have to wait for when the query is interrupted.
constexpr size_t enough_objects = 1024;
constexpr size_t enough_bytes = size_t{16} << 20;
// Pieces of work for each thread, so that they end at about the same time.
constexpr size_t pieces_a_thread = 4;

Error null_payload(const std::string& what) {
  return {Error::Kind::argument, what + " is NULL, every row must have one"};
}

// The columns of images in one chunk.
class Images {
 public:
  Images(const ImageFields& fields, duckdb_vector vector) : fields_(fields) {
    for (size_t i = 0; i < fields.parts.size(); ++i) {
      const duckdb_vector part = duckdb_struct_vector_get_child(vector, fields.parts[i].position);
      data_[i] = duckdb_vector_get_data(part);
      masks_[i] = duckdb_vector_get_validity(part);
    }
  }

  ImageShape shape(size_t i) const {
    ImageShape shape;
    shape.height = side(ImageFields::height, i, "height");
    shape.width = side(ImageFields::width, i, "width");
    shape.channels = side(ImageFields::channels, i, "channels");
    const std::string_view name = dtype(i);
    const auto type = pixel_type(name);
    if (!type) {
      throw Error(Error::Kind::argument, "the dtype of the image is '" + std::string(name) +
                                             "', expected an integer or float of NumPy, as uint16");
    }
    shape.type = *type;
    return shape;
  }

  Bytes pixels(size_t i, const ImageShape& shape) const {
    require(ImageFields::data, i, "data");
    const auto data = text_of(static_cast<const duckdb_string_t*>(data_[ImageFields::data])[i]);
    if (data.size() != shape.bytes()) {
      throw Error(Error::Kind::argument, "an image of " + describe(shape) + " has " +
                                             std::to_string(shape.bytes()) + " bytes, its data " +
                                             std::to_string(data.size()));
    }
    return as_bytes(data.data(), data.size());
  }

 private:
  void require(size_t part, size_t i, const char* name) const {
    if (!is_valid(masks_[part], i)) {
      throw null_payload(std::string("the field ") + name + " of the image");
    }
  }

  uint32_t side(size_t part, size_t i, const char* name) const {
    require(part, i, name);
    const int64_t value = integer_at(data_[part], fields_.parts[part].type, i, name);
    if (value > 0 && value <= UINT32_MAX) return static_cast<uint32_t>(value);
    throw Error(Error::Kind::argument,
                std::string("the image has the ") + name + " " + std::to_string(value));
  }

  std::string_view dtype(size_t i) const {
    require(ImageFields::dtype, i, "dtype");
    const ImageFields::Field& field = fields_.parts[ImageFields::dtype];
    const void* data = data_[ImageFields::dtype];
    if (field.type == DUCKDB_TYPE_VARCHAR) {
      return text_of(static_cast<const duckdb_string_t*>(data)[i]);
    }
    return field.texts[static_cast<size_t>(integer_at(data, field.type, i, "dtype"))];
  }

  const ImageFields& fields_;
  const void* data_[5];
  const uint64_t* masks_[5];
};

}  // namespace

void PayloadEncoder::add(duckdb_data_chunk chunk, size_t count) {
  const duckdb_vector vector = plan_.column(chunk, plan_.payload);
  const uint64_t* mask = duckdb_vector_get_validity(vector);
  std::optional<Images> images;
  if (plan_.image) images.emplace(*plan_.image, vector);
  for (size_t i = 0; i < count; ++i) {
    const int64_t row = next_row();
    try {
      if (!is_valid(mask, i)) throw null_payload("the payload");
      Object object;
      if (images) {
        object.shape = images->shape(i);
        object.bytes = images->pixels(i, object.shape);
      } else {
        const auto text = text_of(strings_of(vector)[i]);
        object.bytes = as_bytes(text.data(), text.size());
      }
      push(std::move(object));
    } catch (Error& error) {
      throw std::move(error).at(row);
    }
  }
  if (objects_.size() >= enough_objects) {
    flush();
  } else {
    keep();
  }
}

void PayloadEncoder::push(Object object) {
  // Codecs want samples where the processor reads them at once.
  const size_t sample = size_of(object.shape.type);
  if (reinterpret_cast<uintptr_t>(object.bytes.data()) % sample != 0) {
    object.kept.assign(object.bytes.begin(), object.bytes.end());
    object.bytes = object.kept;
  }
  bytes_ += object.bytes.size();
  objects_.push_back(std::move(object));
  if (bytes_ >= enough_bytes) flush();
}

// The vectors are gone when the next chunk comes.
void PayloadEncoder::keep() {
  for (Object& object : objects_) {
    if (!object.kept.empty()) continue;
    object.kept.assign(object.bytes.begin(), object.bytes.end());
    object.bytes = object.kept;
  }
}

void PayloadEncoder::encode(Piece& piece) const {
  piece.out.clear();
  piece.lengths.clear();
  piece.crc32s.clear();
  const auto* images = dynamic_cast<const ImageCodec*>(plan_.codec.get());
  const auto* bytes = dynamic_cast<const ByteCodec*>(plan_.codec.get());
  for (size_t i = piece.first; i < piece.first + piece.count; ++i) {
    const Object& object = objects_[i];
    const size_t start = piece.out.size();
    try {
      if (images != nullptr) {
        images->encode(object.shape, object.bytes.data(), piece.out);
      } else {
        bytes->encode(object.bytes, piece.out);
      }
      piece.lengths.push_back(stored_length(piece.out.size() - start));
    } catch (Error& error) {
      throw std::move(error).at(static_cast<int64_t>(spool_.count() + i));
    }
    piece.crc32s.push_back(crc32(std::span(piece.out).subspan(start)));
  }
}

void PayloadEncoder::flush() {
  if (objects_.empty()) return;
  const unsigned workers = worker_count(threads_, objects_.size());
  const size_t piece_bytes = bytes_ / (workers * pieces_a_thread);
  size_t used = 0;
  for (size_t i = 0; i < objects_.size(); ++used) {
    if (used == pieces_.size()) pieces_.emplace_back();
    Piece& piece = pieces_[used];
    piece.first = i;
    for (size_t bytes = 0; i < objects_.size() && bytes <= piece_bytes; ++i) {
      bytes += objects_[i].bytes.size();
    }
    piece.count = i - piece.first;
  }
  parallel_for(used, workers, [&](size_t i) { encode(pieces_[i]); });
  for (size_t i = 0; i < used; ++i) {
    spool_.append(pieces_[i].out, pieces_[i].lengths, pieces_[i].crc32s);
  }
  objects_.clear();
  bytes_ = 0;
}

}  // namespace iac::duckdb
