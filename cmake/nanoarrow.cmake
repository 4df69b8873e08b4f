# nanoarrow's schemas and validation, the flatbuffer schema of Arrow IPC, and flatcc's verifier. The
# core walks the messages itself, column by column.

set(nanoarrow_tree ${nanoarrow_SOURCE}/subprojects/arrow-nanoarrow/src)
file(GLOB flatcc_tree ${nanoarrow_SOURCE}/subprojects/flatcc-*)

# The names are prefixed, so that another copy of nanoarrow in the process stays apart.
set(NANOARROW_NAMESPACE_DEFINE "#define NANOARROW_NAMESPACE IacNanoarrow")
set(NANOARROW_VERSION ${nanoarrow_VERSION})
string(REPLACE "." ";" version_parts ${nanoarrow_VERSION})
list(GET version_parts 0 NANOARROW_VERSION_MAJOR)
list(GET version_parts 1 NANOARROW_VERSION_MINOR)
list(GET version_parts 2 NANOARROW_VERSION_PATCH)
configure_file(${nanoarrow_tree}/nanoarrow/nanoarrow_config.h.in
  ${CMAKE_BINARY_DIR}/include/nanoarrow/nanoarrow_config.h)

set(nanoarrow_sources
  common/array.c common/array_stream.c common/schema.c common/utils.c)
list(TRANSFORM nanoarrow_sources PREPEND ${nanoarrow_tree}/nanoarrow/)

# flatcc 0.6.2 evaluates a failed check twice, and so a damaged message of n nested types 2^n times.
file(READ ${flatcc_tree}/src/runtime/verifier.c verifier)
string(REPLACE "#define check_result(x) if (x) { return (x); }"
  "#define check_result(x) do { int result_ = (x); if (result_) return result_; } while (0)"
  mended_verifier "${verifier}")
if(mended_verifier STREQUAL verifier)
  message(FATAL_ERROR "flatcc's verifier.c is not the one that is mended here")
endif()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/verifier.c CONTENT "${mended_verifier}" @ONLY)
# Each nested type takes two levels; pyarrow writes at most 64 of them.
set_source_files_properties(${CMAKE_BINARY_DIR}/verifier.c PROPERTIES
  COMPILE_DEFINITIONS FLATCC_VERIFIER_MAX_LEVELS=200)

add_library(nanoarrow STATIC ${nanoarrow_sources}
  ${CMAKE_BINARY_DIR}/verifier.c)
target_include_directories(nanoarrow SYSTEM PUBLIC
  ${CMAKE_BINARY_DIR}/include ${nanoarrow_tree} ${flatcc_tree}/include)

# Writing streams: what the extension and the native tests do in C++.
add_library(nanoarrow_writer STATIC EXCLUDE_FROM_ALL
  ${nanoarrow_tree}/nanoarrow/ipc/codecs.c ${nanoarrow_tree}/nanoarrow/ipc/decoder.c
  ${nanoarrow_tree}/nanoarrow/ipc/encoder.c ${nanoarrow_tree}/nanoarrow/ipc/writer.c
  ${flatcc_tree}/src/runtime/builder.c ${flatcc_tree}/src/runtime/emitter.c
  ${flatcc_tree}/src/runtime/refmap.c)
target_link_libraries(nanoarrow_writer PUBLIC nanoarrow)
