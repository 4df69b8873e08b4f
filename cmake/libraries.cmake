# The compiler, Python and the system libraries, all looked for before anything is said, so that
# one message names everything that is missing.

set(IAC_LIBRARIES "")
set(missing_packages "")

# iac_library(DEBIAN_PACKAGE PKG_CONFIG_MODULE...)   `dev` reads the package names from these calls
macro(iac_library package)
  string(MAKE_C_IDENTIFIER ${package} name)
  pkg_check_modules(${name} QUIET IMPORTED_TARGET ${ARGN})
  if(${name}_FOUND)
    list(APPEND IAC_LIBRARIES PkgConfig::${name})
  else()
    list(APPEND missing_packages ${package})
  endif()
endmacro()

# iac_plain_library(DEBIAN_PACKAGE HEADER LIBRARY...)   one that pkg-config knows nothing of
macro(iac_plain_library package header)
  string(MAKE_C_IDENTIFIER ${package} name)
  find_path(${name}_INCLUDE ${header} PATH_SUFFIXES gdcm-3.0)
  set(found ${${name}_INCLUDE})
  add_library(${name} INTERFACE IMPORTED)
  target_include_directories(${name} INTERFACE ${${name}_INCLUDE})
  foreach(library ${ARGN})
    find_library(${library}_LIBRARY ${library})
    target_link_libraries(${name} INTERFACE ${${library}_LIBRARY})
    if(NOT ${library}_LIBRARY)
      set(found "")
    endif()
  endforeach()
  if(found)
    list(APPEND IAC_LIBRARIES ${name})
  else()
    list(APPEND missing_packages ${package})
  endif()
endmacro()

include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
  enable_language(C)
  enable_language(CXX)
  find_package(Threads REQUIRED)
else()
  list(APPEND missing_packages g++)
endif()

find_package(Python 3.11 REQUIRED COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)
if(CMAKE_CXX_COMPILER AND NOT Python_Development.Module_FOUND)
  list(APPEND missing_packages python3-dev)
endif()

find_package(PkgConfig QUIET)
if(NOT PkgConfig_FOUND)
  list(APPEND missing_packages pkg-config)
endif()

iac_library(libbrotli-dev libbrotlidec libbrotlienc)
iac_library(libdeflate-dev libdeflate)
iac_library(libjpeg62-turbo-dev libjpeg)
iac_library(liblz4-dev liblz4)
iac_library(libopenjp2-7-dev libopenjp2)
iac_library(libzstd-dev libzstd)
iac_library(nlohmann-json3-dev nlohmann_json)
iac_plain_library(libgdcm-dev gdcmjpeg/16/jpeglib.h gdcmjpeg8 gdcmjpeg12 gdcmjpeg16)
iac_plain_library(libopenjph-dev openjph/ojph_arch.h openjph)

if(missing_packages)
  list(JOIN missing_packages " " missing_packages)
  message(FATAL_ERROR
    "System packages are missing: ${missing_packages}\n"
    "On Debian or Ubuntu:\n  apt-get install ${missing_packages}")
endif()
