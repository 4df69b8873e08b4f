# Third-party C sources, taken from the sdists of their Python packages and kept in a cache, so that
# a later build needs no network. A cached archive with the right hash is used as it is.

set(IAC_SOURCES_CACHE "$ENV{IAC_SOURCES_CACHE}" CACHE PATH "Folder of downloaded source archives")
if(NOT IAC_SOURCES_CACHE)
  set(IAC_SOURCES_CACHE "$ENV{HOME}/.cache/iac_query/sources")
endif()

# unearth does not read pip's configuration: it is told the index that pip would ask.
function(iac_index_option result)
  set(index "$ENV{PIP_INDEX_URL}")
  if(NOT index)
    # -I finds the pip beside the interpreter, which an isolated build hides. `config list` knows
    # every configuration file, `config get` only the user's.
    execute_process(COMMAND ${Python_EXECUTABLE} -I -m pip config list
      OUTPUT_VARIABLE settings ERROR_QUIET)
    if(settings MATCHES "global\\.index-url='([^']*)'")
      set(index "${CMAKE_MATCH_1}")
    endif()
  endif()
  if(index)
    set(${result} --index-url ${index} PARENT_SCOPE)
  endif()
endfunction()

# Downloads the sdist beside its final place, so that only a whole and checked file appears there.
function(iac_download name version sha256 archive)
  message(STATUS "Downloading the sources of ${name} ${version}")
  string(RANDOM LENGTH 8 suffix)
  set(folder ${IAC_SOURCES_CACHE}/.download-${suffix})
  file(MAKE_DIRECTORY ${folder})
  iac_index_option(index_option)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -m unearth ${name}==${version} --no-binary ${index_option}
      --download ${folder}
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE error)
  cmake_path(GET archive FILENAME file)
  set(problem "")
  if(failed OR NOT EXISTS ${folder}/${file})
    string(REGEX MATCH "[^\n]*\n?$" problem "${error}")
    string(STRIP "cannot be downloaded. ${problem}" problem)
  else()
    file(SHA256 ${folder}/${file} found)
    if(found STREQUAL sha256)
      file(RENAME ${folder}/${file} ${archive})
    else()
      set(problem "has the SHA-256 ${found} instead of ${sha256}.")
    endif()
  endif()
  file(REMOVE_RECURSE ${folder})
  if(problem)
    message(FATAL_ERROR "${file} ${problem}\n"
      "  Put the file into a folder of yours and set IAC_SOURCES_CACHE to that folder.")
  endif()
endfunction()

# iac_source(NAME VERSION SHA256 PATTERN...) extracts what the patterns name; sets NAME_SOURCE.
function(iac_source name version sha256)
  set(folder ${name}-${version})
  set(tree ${CMAKE_BINARY_DIR}/sources/${folder})
  set(${name}_SOURCE ${tree} PARENT_SCOPE)
  if(IS_DIRECTORY ${tree})
    return()
  endif()
  set(archive ${IAC_SOURCES_CACHE}/${folder}.tar.gz)
  set(found "")
  if(EXISTS ${archive})
    file(SHA256 ${archive} found)
  endif()
  if(NOT found STREQUAL sha256)
    iac_download(${name} ${version} ${sha256} ${archive})
  endif()
  file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${tree}.part PATTERNS ${ARGN})
  file(RENAME ${tree}.part/${folder} ${tree})
endfunction()

set(nanoarrow_VERSION 0.9.0)
iac_source(nanoarrow ${nanoarrow_VERSION}
  1ce15bbed8532839347faa78824c5dbd3769bff60661003e34c6fba5dd881bd3
  "*/subprojects/arrow-nanoarrow/src/nanoarrow/*"
  "*/subprojects/flatcc-*/include/flatcc/*"
  "*/subprojects/flatcc-*/src/runtime/*")

# The sources of CharLS 2.4.2.
set(pyjpegls_VERSION 1.5.1)
iac_source(pyjpegls ${pyjpegls_VERSION}
  d0fe09dfb7f75ce78e3b1e0519912a42f1827d68bbc3609652f4f8743c956025
  "*/lib/charls/include/*" "*/lib/charls/src/*")

# The sources of libjxl 0.11.2, Highway 1.2 and skcms.
set(pylibjxl_VERSION 0.5.0)
iac_source(pylibjxl ${pylibjxl_VERSION}
  3fea4e1a4b8fee307c4ce8c8be9f8ef14062d78baa85ee9137c234a9a2f89b79
  "*/third_party/libjxl/lib/include/*" "*/third_party/libjxl/lib/jxl/*"
  "*/third_party/libjxl/lib/jxl_lists.cmake"
  "*/third_party/highway/hwy/*.h" "*/third_party/highway/hwy/*.cc"
  "*/third_party/skcms/skcms.*" "*/third_party/skcms/src/*")

# The headers fix which engines load the extension: this version and every later one.
set(duckdb_VERSION 1.5.6)
iac_source(duckdb ${duckdb_VERSION}
  166a91dbfacfc0c9f08cc76c0243cb6d3d4296bfab5bad72a3cfb63140a5b7c8
  "*/external/duckdb/src/include/duckdb.h"
  "*/external/duckdb/src/include/duckdb_extension.h")
