#include "iac/codec/codec.h"

#include "iac/codec/jpeg/stream.h"
#include "iac/dicom/rle.h"
#include "iac/workers.h"
#include "python/bindings.h"

namespace iac::python {
namespace {

py::bytes encode_bytes(const ByteCodec& codec, py::handle object) {
  const BufferView view(object);
  std::vector<std::byte> out;
  {
    const Unlocked unlocked;
    codec.encode(view.bytes(), out);
  }
  return to_bytes(out);
}

// encode(i, out) for each of `count` objects, in parallel.
template <class Encode>
py::list encode_all(size_t count, unsigned workers, Encode encode) {
  std::vector<std::vector<std::byte>> encoded(count);
  {
    const Unlocked unlocked;
    parallel_for(count, worker_count(workers, count), [&](size_t i) {
      check_interrupt();
      encode(i, encoded[i]);
    });
  }
  py::list out;
  for (const auto& payload : encoded) out.append(to_bytes(payload));
  return out;
}

py::list encode_many_bytes(const ByteCodec& codec, const py::list& objects, unsigned workers) {
  const auto views = hold(objects);
  return encode_all(views.size(), workers, [&](size_t i, std::vector<std::byte>& out) {
    codec.encode(views[i].bytes(), out);
  });
}

// The arrays are as iac_query.images.as_image makes them: contiguous, (height, width[, channels]),
// native byte order.
py::list encode_many_images(const ImageCodec& codec, const py::list& arrays, unsigned workers) {
  const auto views = hold(arrays);
  std::vector<ImageShape> shapes;
  for (const py::handle item : arrays) {
    const auto array = py::reinterpret_borrow<py::array>(item);
    const auto name = array.dtype().attr("name").cast<std::string>();
    const auto type = pixel_type(name);
    if (!type.has_value()) throw py::value_error("images of " + name + " cannot be encoded");
    shapes.push_back({static_cast<uint32_t>(array.shape(0)), static_cast<uint32_t>(array.shape(1)),
                      array.ndim() == 3 ? static_cast<uint32_t>(array.shape(2)) : 1, *type});
  }
  return encode_all(views.size(), workers, [&](size_t i, std::vector<std::byte>& out) {
    try {
      codec.encode(shapes[i], views[i].bytes().data(), out);
    } catch (Error& error) {
      throw std::move(error).at(views.size() > 1 ? static_cast<int64_t>(i) : -1);
    }
  });
}

// Height, width, channels and NumPy's name of the type.
py::tuple tuple_of(const ImageShape& shape) {
  return py::make_tuple(shape.height, shape.width, shape.channels, name_of(shape.type));
}

// From the start of a payload.
py::tuple image_shape(const Codec& codec, py::handle payload) {
  const BufferView view(payload);
  return tuple_of(codec.decoded_size(view.bytes()).image);
}

// Of payloads that are whole. An error names the first that is not.
py::list check_whole(const ImageCodec& codec, const py::list& payloads, unsigned workers) {
  const auto views = hold(payloads);
  std::vector<ImageShape> shapes(views.size());
  {
    const Unlocked unlocked;
    parallel_for(views.size(), worker_count(workers, views.size()), [&](size_t i) {
      check_interrupt();
      try {
        shapes[i] = codec.check_whole(views[i].bytes());
      } catch (Error& error) {
        throw std::move(error).at(static_cast<int64_t>(i));
      }
    });
  }
  py::list out;
  for (const ImageShape& shape : shapes) out.append(tuple_of(shape));
  return out;
}

Batch decode_many(const Codec& codec, const py::list& payloads, unsigned workers,
                  const std::string& on_error, uint64_t max_record_bytes, uint64_t max_batch_bytes,
                  uint64_t max_samples) {
  const OnError rule = parse_on_error(on_error);
  const auto views = hold(payloads);
  const Unlocked unlocked;
  std::vector<Bytes> bytes;
  uint64_t total = 0;
  for (const BufferView& view : views) {
    bytes.push_back(view.bytes());
    total += bytes.back().size();
  }
  const Codec* one = &codec;
  Failures failures(bytes.size());
  BatchDecoder decoder({max_record_bytes, max_batch_bytes, max_samples}, workers, total);
  decoder.add(bytes, {&one, 1}, 0, failures);
  return decoder.finish(rule, failures);
}

py::object wrapped(const std::shared_ptr<const Codec>& made) {
  const auto codec = std::const_pointer_cast<Codec>(made);
  if (const auto images = std::dynamic_pointer_cast<ImageCodec>(codec)) return py::cast(images);
  return py::cast(std::dynamic_pointer_cast<ByteCodec>(codec));
}

// What a JPEG stream says of its colours: whether it is JFIF, and Adobe's transform or None.
py::tuple jpeg_colours(py::handle stream) {
  const BufferView view(stream);
  const jpeg::Header header = jpeg::read_header(view.bytes());
  const py::object transform =
      header.adobe_transform < 0 ? py::none() : py::object(py::int_(header.adobe_transform));
  return py::make_tuple(header.jfif, transform);
}

// Whether a frame of RLE Lossless decodes to that many pixels.
bool is_rle(py::handle frame, uint64_t pixels, uint64_t channels, uint64_t size) {
  const BufferView view(frame);
  const Unlocked unlocked;
  try {
    dicom::check_rle(view.bytes(), pixels, channels, size);
    std::vector<std::byte> planes(pixels * channels * size);
    dicom::decode_rle(view.bytes(), pixels, channels, size, planes.data());
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace

void bind_codec(py::module_& module) {
  py::class_<Codec, std::shared_ptr<Codec>>(module, "Codec")
      .def_property_readonly("name", &Codec::name)
      .def_property_readonly("parameters", &Codec::parameters)
      .def("decode_many", &decode_many, py::arg("payloads"), py::arg("workers"),
           py::arg("on_error"), py::arg("max_record_bytes"), py::arg("max_batch_bytes"),
           py::arg("max_samples"));
  py::class_<ByteCodec, Codec, std::shared_ptr<ByteCodec>>(module, "ByteCodec")
      .def("encode", &encode_bytes, py::arg("object"))
      .def("encode_many", &encode_many_bytes, py::arg("objects"), py::arg("workers"));
  py::class_<ImageCodec, Codec, std::shared_ptr<ImageCodec>>(module, "ImageCodec")
      .def("encode_many", &encode_many_images, py::arg("arrays"), py::arg("workers"))
      .def("image_shape", &image_shape, py::arg("payload"))
      .def("check_whole", &check_whole, py::arg("payloads"), py::arg("workers"));

  module.def(
      "make_codec",
      [](const std::string& name, const std::string& params) {
        return wrapped(make_codec(name, params));
      },
      py::arg("name"), py::arg("params"));
  module.def(
      "make_decoder",
      [](const std::string& name, const std::string& params) {
        return wrapped(make_decoder(name, params));
      },
      py::arg("name"), py::arg("params"));
  module.def("jpeg_colours", &jpeg_colours, py::arg("stream"));
  module.def("is_rle", &is_rle, py::arg("frame"), py::arg("pixels"), py::arg("channels"),
             py::arg("size"));
}

}  // namespace iac::python
