// The calls of libjpeg, for whichever jpeglib.h and jerror.h were included before. The library
// leaves by longjmp from any call: nothing here that it passes over has a destructor. It uses no
// memory but what belongs to the image, so that threads do not meet.
#pragma once

#include <csetjmp>
#include <cstring>
#include <new>

#include "iac/codec/jpeg/library.h"

namespace iac::jpeg {
namespace {

struct Errors {
  jpeg_error_mgr manager;  // first, the library points to it
  jmp_buf escape;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr info) {
  std::longjmp(reinterpret_cast<Errors*>(info->err)->escape, 1);
}

[[noreturn]] void give_up(j_common_ptr info, const char* reason) {
  std::strncpy(reinterpret_cast<Errors*>(info->err)->text, reason, JMSG_LENGTH_MAX - 1);
  leave(info);
}

[[noreturn]] void take_error(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  errors->manager.format_message(info, errors->text);
  leave(info);
}

// Warnings tell of damage, all but one: fields of a scan that sequential decoding does not use.
void take_message(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code != JWRN_NOT_SEQUENTIAL) take_error(info);
}

void print_nothing(j_common_ptr) {}

void set_up(Errors& errors) {
  std::memset(&errors, 0, sizeof errors);
  jpeg_std_error(&errors.manager);
  errors.manager.error_exit = take_error;
  errors.manager.emit_message = take_message;
  errors.manager.output_message = print_nothing;
}

struct Source {
  jpeg_source_mgr manager;  // first, the library points to it
  const Bytes* next;
  const Bytes* end;
};

void begin_source(j_decompress_ptr) {}
void end_source(j_decompress_ptr) {}

boolean next_piece(j_decompress_ptr info) {
  auto* source = reinterpret_cast<Source*>(info->src);
  while (source->next != source->end && source->next->empty()) ++source->next;
  if (source->next == source->end) give_up(reinterpret_cast<j_common_ptr>(info), "payload is cut");
  source->manager.next_input_byte = reinterpret_cast<const JOCTET*>(source->next->data());
  source->manager.bytes_in_buffer = source->next->size();
  ++source->next;
  return TRUE;
}

void skip_bytes(j_decompress_ptr info, long count) {
  auto left = static_cast<size_t>(count > 0 ? count : 0);
  while (left > info->src->bytes_in_buffer) {
    left -= info->src->bytes_in_buffer;
    next_piece(info);
  }
  info->src->next_input_byte += left;
  info->src->bytes_in_buffer -= left;
}

void set_up(Source& source, std::span<const Bytes> pieces) {
  std::memset(&source, 0, sizeof source);
  source.manager.init_source = begin_source;
  source.manager.fill_input_buffer = next_piece;
  source.manager.skip_input_data = skip_bytes;
  source.manager.resync_to_restart = jpeg_resync_to_restart;
  source.manager.term_source = end_source;
  source.next = pieces.data();
  source.end = pieces.data() + pieces.size();
}

struct Destination {
  jpeg_destination_mgr manager;  // first, the library points to it
  std::vector<std::byte>* out;
  size_t written;
};

bool resize(std::vector<std::byte>& out, size_t size) {
  try {
    out.resize(size);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void give_room(j_compress_ptr info, size_t size) {
  auto* destination = reinterpret_cast<Destination*>(info->dest);
  if (!resize(*destination->out, destination->written + size)) {
    give_up(reinterpret_cast<j_common_ptr>(info), "no memory");
  }
  std::byte* place = destination->out->data() + destination->written;
  destination->manager.next_output_byte = reinterpret_cast<JOCTET*>(place);
  destination->manager.free_in_buffer = size;
}

void begin_destination(j_compress_ptr info) {
  give_room(info, 4096 + size_t{info->image_width} * info->image_height / 4);
}

boolean more_room(j_compress_ptr info) {
  auto* destination = reinterpret_cast<Destination*>(info->dest);
  destination->written = destination->out->size();  // the whole room was used, says the library
  give_room(info, destination->written / 2 + 4096);
  return TRUE;
}

void end_destination(j_compress_ptr info) {
  auto* destination = reinterpret_cast<Destination*>(info->dest);
  destination->written = destination->out->size() - destination->manager.free_in_buffer;
}

void set_up(Destination& destination, std::vector<std::byte>& out) {
  std::memset(&destination.manager, 0, sizeof destination.manager);
  destination.manager.init_destination = begin_destination;
  destination.manager.empty_output_buffer = more_room;
  destination.manager.term_destination = end_destination;
  destination.out = &out;
  destination.written = out.size();
}

size_t row_bytes(const ImageShape& shape) {
  return size_t{shape.width} * shape.channels * sizeof(JSAMPLE);
}

// Records lie one behind the other and may start at an odd address.
bool is_aligned(const void* pixels) {
  return reinterpret_cast<uintptr_t>(pixels) % alignof(JSAMPLE) == 0;
}

JSAMPARRAY spare_row(j_common_ptr info, const ImageShape& shape) {
  return info->mem->alloc_sarray(info, JPOOL_IMAGE, shape.width * shape.channels, 1);
}

bool decode_image(jpeg_decompress_struct* info, Errors* errors, Source* source,
                  const Decoding* job) {
  if (setjmp(errors->escape) != 0) return false;
  const auto common = reinterpret_cast<j_common_ptr>(info);
  jpeg_create_decompress(info);
  info->src = &source->manager;
  jpeg_read_header(info, TRUE);
  const ImageShape& shape = job->shape;
  if (info->image_width != shape.width || info->image_height != shape.height ||
      info->num_components != static_cast<int>(shape.channels) ||
      sizeof(JSAMPLE) != size_of(shape.type)) {
    give_up(common, "frame header is damaged");
  }
  // Without a conversion both are the same, whichever it is.
  if (shape.channels == 3) {
    info->jpeg_color_space = job->from_ycbcr ? JCS_YCbCr : JCS_RGB;
    info->out_color_space = JCS_RGB;
  }
  info->dct_method = JDCT_ISLOW;
  jpeg_start_decompress(info);
  if (info->output_width != shape.width || info->output_height != shape.height ||
      info->output_components != static_cast<int>(shape.channels)) {
    give_up(common, "frame header is damaged");
  }
  const size_t stride = row_bytes(shape);
  const bool aligned = is_aligned(job->pixels);
  const JSAMPARRAY spare = aligned ? nullptr : spare_row(common, shape);
  while (info->output_scanline < info->output_height) {
    std::byte* place = job->pixels + info->output_scanline * stride;
    if (aligned) {
      constexpr JDIMENSION at_once = 4;
      JSAMPROW rows[at_once];
      const JDIMENSION left = info->output_height - info->output_scanline;
      const JDIMENSION count = left < at_once ? left : at_once;
      for (JDIMENSION i = 0; i < count; ++i) {
        rows[i] = reinterpret_cast<JSAMPROW>(place + i * stride);
      }
      jpeg_read_scanlines(info, rows, count);
    } else {
      jpeg_read_scanlines(info, spare, 1);
      std::memcpy(place, spare[0], stride);
    }
  }
  jpeg_finish_decompress(info);
  return true;
}

std::string decode(const Decoding& job) {
  jpeg_decompress_struct info;
  Errors errors;
  Source source;
  std::memset(&info, 0, sizeof info);
  set_up(errors);
  set_up(source, job.pieces);
  info.err = &errors.manager;
  const bool done = decode_image(&info, &errors, &source, &job);
  jpeg_destroy_decompress(&info);
  return done ? std::string() : std::string(errors.text);
}

using Configure = void (*)(jpeg_compress_struct* info, const Encoding& job);

bool encode_image(jpeg_compress_struct* info, Errors* errors, Destination* destination,
                  const Encoding* job, Configure configure) {
  if (setjmp(errors->escape) != 0) return false;
  const auto common = reinterpret_cast<j_common_ptr>(info);
  jpeg_create_compress(info);
  info->dest = &destination->manager;
  const ImageShape& shape = job->shape;
  info->image_width = shape.width;
  info->image_height = shape.height;
  info->input_components = static_cast<int>(shape.channels);
  info->in_color_space = shape.channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(info);
  info->dct_method = JDCT_ISLOW;
  configure(info, *job);
  jpeg_start_compress(info, TRUE);
  const size_t stride = row_bytes(shape);
  const bool aligned = is_aligned(job->pixels);
  const JSAMPARRAY spare = aligned ? nullptr : spare_row(common, shape);
  while (info->next_scanline < info->image_height) {
    const std::byte* place = job->pixels + info->next_scanline * stride;
    JSAMPROW row = reinterpret_cast<JSAMPROW>(const_cast<std::byte*>(place));
    if (!aligned) std::memcpy(row = spare[0], place, stride);
    jpeg_write_scanlines(info, &row, 1);
  }
  jpeg_finish_compress(info);
  return true;
}

[[maybe_unused]] std::string encode(const Encoding& job, Configure configure) {
  jpeg_compress_struct info;
  Errors errors;
  Destination destination;
  std::memset(&info, 0, sizeof info);
  set_up(errors);
  const size_t start = job.out->size();
  set_up(destination, *job.out);
  info.err = &errors.manager;
  const bool done = encode_image(&info, &errors, &destination, &job, configure);
  jpeg_destroy_compress(&info);
  job.out->resize(done ? destination.written : start);
  return done ? std::string() : std::string(errors.text);
}

}  // namespace
}  // namespace iac::jpeg
