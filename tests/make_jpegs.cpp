// Writes the JPEG streams under tests/data/jpeg that Python's encoders cannot: progressive 12-bit,
// restart markers, scans of one component, point transforms, arithmetic coding. The files are kept,
// so this runs only when one is added, once for libjpeg-turbo and once for each build of GDCM's:
//   g++ -DTURBO tests/make_jpegs.cpp -ljpeg && ./a.out
//   g++ -DBITS=12 -I/usr/include/gdcm-3.0 tests/make_jpegs.cpp -lgdcmjpeg12 && ./a.out   (8, 16)
#include <cstdio>
#include <string>
#include <vector>

#ifdef TURBO
#include <jpeglib.h>
#else
#define STRING(x) #x
#define HEADER(bits) STRING(gdcmjpeg/bits/jpeglib.h)
extern "C" {
#include HEADER(BITS)
}
#endif

struct Options {
  bool progressive = false, alone = false, arithmetic = false;
  int restart_rows = 0;
  int horizontal = 1, vertical = 1;
  int predictor = 0, transform = 0;  // predictor 0: with loss
};

static void write(const std::string& name, int width, int height, int channels, Options options) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  FILE* file = fopen(("tests/data/jpeg/" + name + ".jpg").c_str(), "wb");
  jpeg_stdio_dest(&info, file);
  info.image_width = width;
  info.image_height = height;
  info.input_components = channels;
  info.in_color_space = channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  info.optimize_coding = options.arithmetic ? FALSE : TRUE;
  info.arith_code = options.arithmetic ? TRUE : FALSE;
  info.restart_in_rows = options.restart_rows;
  jpeg_scan_info scans[3] = {};
#ifndef TURBO
  if (options.predictor > 0) jpeg_simple_lossless(&info, options.predictor, options.transform);
#endif
  if (options.predictor == 0) {
    info.comp_info[0].h_samp_factor = options.horizontal;
    info.comp_info[0].v_samp_factor = options.vertical;
    if (options.progressive) jpeg_simple_progression(&info);
  }
  if (options.alone) {
    for (int i = 0; i < channels; ++i) {
      scans[i].comps_in_scan = 1;
      scans[i].component_index[0] = i;
      scans[i].Ss = options.predictor;
      scans[i].Se = options.predictor > 0 ? 0 : 63;
      scans[i].Al = options.transform;
    }
    info.scan_info = scans;
    info.num_scans = channels;
  }
  jpeg_start_compress(&info, TRUE);
  std::vector<JSAMPLE> row(width * channels);
  for (int y = 0; y < height; ++y) {
    for (int i = 0; i < width * channels; ++i) {
      const int x = i / channels, c = i % channels;
      row[i] = static_cast<JSAMPLE>((x * (3 + c) + y * (5 - c) + (x ^ y) * c) * (MAXJSAMPLE / 255) %
                                    (MAXJSAMPLE + 1));
    }
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  fclose(file);
}

int main() {
#ifdef TURBO
  write("restart", 23, 37, 3, {.restart_rows = 1, .horizontal = 2, .vertical = 2});
  write("alone", 23, 17, 3, {.alone = true, .horizontal = 2});
  write("fourfold", 37, 35, 3, {.horizontal = 4, .vertical = 1});
  write("uneven", 37, 35, 3, {.horizontal = 2, .vertical = 4});
  write("arithmetic", 23, 17, 3, {.arithmetic = true, .horizontal = 2, .vertical = 2});
  write("arithmetic_progressive", 23, 17, 3, {.progressive = true, .arithmetic = true});
#elif BITS == 12
  write("12_progressive", 23, 17, 3, {.progressive = true, .horizontal = 2, .vertical = 2});
  write("12_restart", 23, 37, 3, {.restart_rows = 1, .horizontal = 2, .vertical = 2});
  write("12_alone", 23, 17, 3, {.alone = true, .horizontal = 2});
#else
  const std::string bits = std::to_string(BITS_IN_JSAMPLE) + "_lossless_";
  write(bits + "restart", 23, 17, 3, {.restart_rows = 3, .predictor = 7});
  write(bits + "alone", 23, 17, 3, {.alone = true, .restart_rows = 1, .predictor = 4});
  write(bits + "transform", 23, 17, 1, {.predictor = 1, .transform = 2});
#endif
}
