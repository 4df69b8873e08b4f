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

add_library(nanoarrow STATIC ${nanoarrow_sources}
  ${flatcc_tree}/src/runtime/verifier.c)
target_include_directories(nanoarrow SYSTEM PUBLIC
  ${CMAKE_BINARY_DIR}/include ${nanoarrow_tree} ${flatcc_tree}/include)

# Writing streams: only the native tests do it in C++.
if(IAC_TESTS)
  add_library(nanoarrow_writer STATIC EXCLUDE_FROM_ALL
    ${nanoarrow_tree}/nanoarrow/ipc/codecs.c ${nanoarrow_tree}/nanoarrow/ipc/decoder.c
    ${nanoarrow_tree}/nanoarrow/ipc/encoder.c ${nanoarrow_tree}/nanoarrow/ipc/writer.c
    ${flatcc_tree}/src/runtime/builder.c ${flatcc_tree}/src/runtime/emitter.c
    ${flatcc_tree}/src/runtime/refmap.c)
  target_link_libraries(nanoarrow_writer PUBLIC nanoarrow)
endif()
