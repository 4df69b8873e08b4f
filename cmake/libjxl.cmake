# libjxl, JPEG XL, with Highway and skcms. Compiled here because distributions build it with its
# assertions on: it then prints a line for each damaged payload, and some end the process. Of
# libjxl's own CMake files, which set flags and install rules for the whole project, only the lists
# of sources are taken. Exceptions stay on, so that one of std::bad_alloc frees what it passes.

set(libjxl_tree ${pylibjxl_SOURCE}/third_party/libjxl)
set(highway_tree ${libjxl_tree}/third_party/highway)
set(skcms_tree ${libjxl_tree}/third_party/skcms)
set(libjxl_headers ${CMAKE_BINARY_DIR}/include/libjxl)

function(iac_libjxl_sources result)
  include(${libjxl_tree}/lib/jxl_lists.cmake)
  set(sources ${JPEGXL_INTERNAL_CMS_SOURCES} ${JPEGXL_INTERNAL_DEC_SOURCES}
    ${JPEGXL_INTERNAL_ENC_SOURCES})
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  list(TRANSFORM sources PREPEND ${libjxl_tree}/lib/)
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

iac_libjxl_sources(libjxl_sources)
set(highway_sources abort.cc aligned_allocator.cc per_target.cc print.cc targets.cc)
list(TRANSFORM highway_sources PREPEND ${highway_tree}/hwy/)
set(skcms_sources ${skcms_tree}/skcms.cc ${skcms_tree}/src/skcms_TransformBaseline.cc)

set(JPEGXL_MAJOR_VERSION 0)
set(JPEGXL_MINOR_VERSION 11)
set(JPEGXL_PATCH_VERSION 2)
configure_file(${libjxl_tree}/lib/jxl/version.h.in ${libjxl_headers}/jxl/version.h)

add_library(jxl STATIC ${libjxl_sources} ${highway_sources} ${skcms_sources})
include(GenerateExportHeader)
generate_export_header(jxl BASE_NAME JXL EXPORT_FILE_NAME ${libjxl_headers}/jxl/jxl_export.h)
generate_export_header(jxl BASE_NAME JXL_CMS
  EXPORT_FILE_NAME ${libjxl_headers}/jxl/jxl_cms_export.h)
target_include_directories(jxl SYSTEM
  PUBLIC ${libjxl_headers} ${libjxl_tree}/lib/include
  PRIVATE ${libjxl_tree} ${highway_tree} ${skcms_tree})
target_link_libraries(jxl PRIVATE PkgConfig::libbrotli_dev)

# Highway compiles most of libjxl once for each kind of processor and picks one at run time. Two are
# enough: the baseline, and on x86-64 AVX2.
set(highway_without HWY_SSSE3 HWY_SSE4 HWY_AVX3 HWY_AVX3_DL HWY_AVX3_ZEN4 HWY_AVX3_SPR
  HWY_SVE HWY_SVE2 HWY_SVE_256 HWY_SVE2_128)
list(JOIN highway_without "|" highway_without)
target_compile_definitions(jxl
  PUBLIC JXL_STATIC_DEFINE JXL_CMS_STATIC_DEFINE
  PRIVATE JXL_INTERNAL_LIBRARY_BUILD HWY_STATIC_DEFINE "HWY_DISABLED_TARGETS=(${highway_without})"
    FJXL_ENABLE_AVX512=0 JPEGXL_ENABLE_SKCMS=1 SKCMS_DISABLE_HSW SKCMS_DISABLE_SKX
    JPEGXL_ENABLE_TRANSCODE_JPEG=0 JPEGXL_ENABLE_BOXES=0)
# NDEBUG as an option, which comes after the -UNDEBUG of sanitized builds.
target_compile_options(jxl PRIVATE -DNDEBUG -w)

# For the sake of the build time: the older standard has the smaller headers, and sources that are
# compiled once share a compilation.
set_target_properties(jxl PROPERTIES CXX_STANDARD 17 UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
if(sanitizers)
  # With checks of undefined behaviour, some of its files take minutes.
  target_compile_options(jxl PRIVATE -fno-sanitize=undefined -g1)
endif()
foreach(source IN LISTS libjxl_sources highway_sources skcms_sources)
  file(STRINGS ${source} is_vectorized REGEX "foreach_target\.h" LIMIT_COUNT 1)
  if(is_vectorized OR NOT source IN_LIST libjxl_sources)
    set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endforeach()
