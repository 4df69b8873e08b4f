# CharLS, JPEG-LS. Compiled here because distributions build it with its assertions on, which takes
# half its speed and lets a damaged payload end the process.

set(charls_tree ${pyjpegls_SOURCE}/lib/charls)

# Damaged payloads let run mode's statistics grow until the loop over them goes on for ever. They get
# the bound that those of the other contexts have.
set(charls_run_mode ${charls_tree}/src/context_run_mode.h)
set(charls_sum "a_ += (e_mapped_error_value + 1 - run_interruption_type_) >> 1;\n")
string(CONCAT charls_bound
  "        if (a_ < 0 || a_ >= 65536 * 256)\n"
  "            impl::throw_jpegls_error(jpegls_errc::invalid_encoded_data);\n")
file(READ ${charls_run_mode} charls_header)
string(FIND "${charls_header}" "${charls_sum}${charls_bound}" charls_is_mended)
if(charls_is_mended EQUAL -1)
  string(REPLACE "${charls_sum}" "${charls_sum}${charls_bound}" charls_mended "${charls_header}")
  string(REPLACE "const uint8_t reset_threshold) noexcept" "const uint8_t reset_threshold)"
    charls_mended "${charls_mended}")
  if(charls_mended STREQUAL charls_header)
    message(FATAL_ERROR "CharLS's context_run_mode.h is not the one that is mended here")
  endif()
  file(WRITE ${charls_run_mode} "${charls_mended}")
endif()

file(GLOB charls_sources ${charls_tree}/src/*.cpp)
add_library(charls STATIC ${charls_sources})
target_include_directories(charls SYSTEM PUBLIC ${charls_tree}/include)
target_compile_definitions(charls
  PUBLIC CHARLS_STATIC
  PRIVATE CHARLS_LIBRARY_BUILD NDEBUG)
