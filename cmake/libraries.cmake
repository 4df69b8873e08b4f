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
iac_library(liblz4-dev liblz4)
iac_library(libzstd-dev libzstd)
iac_library(nlohmann-json3-dev nlohmann_json)

if(missing_packages)
  list(JOIN missing_packages " " missing_packages)
  message(FATAL_ERROR
    "System packages are missing: ${missing_packages}\n"
    "On Debian or Ubuntu:\n  apt-get install ${missing_packages}")
endif()
