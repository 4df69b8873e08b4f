# The DuckDB extension: a shared library with DuckDB's footer, installed beside the Python module.

file(GLOB extension_sources CONFIGURE_DEPENDS extension/*.cpp)

if(APPLE)
  set(duckdb_platform osx)
else()
  set(duckdb_platform linux)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  string(APPEND duckdb_platform _amd64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  string(APPEND duckdb_platform _arm64)
else()
  message(FATAL_ERROR "DuckDB has no extensions for ${CMAKE_SYSTEM_PROCESSOR}")
endif()

# Of DuckDB's entry point macro.
set_source_files_properties(extension/extension.cpp
  PROPERTIES COMPILE_OPTIONS -Wno-missing-field-initializers)
add_library(iac_extension MODULE ${extension_sources})
target_include_directories(iac_extension SYSTEM PRIVATE
  ${duckdb_SOURCE}/external/duckdb/src/include)
target_link_libraries(iac_extension PRIVATE iac_core iac_shell_flags nanoarrow_writer)

set(extension_file ${CMAKE_BINARY_DIR}/iac.duckdb_extension)
set(footer_script ${PROJECT_SOURCE_DIR}/cmake/footer.py)
add_custom_command(OUTPUT ${extension_file}
  COMMAND ${Python_EXECUTABLE} ${footer_script} $<TARGET_FILE:iac_extension> ${extension_file}
    --duckdb v${duckdb_VERSION} --version v${PROJECT_VERSION} --platform ${duckdb_platform}
  DEPENDS iac_extension ${footer_script}
  VERBATIM)
add_custom_target(iac_extension_file ALL DEPENDS ${extension_file})
install(FILES ${extension_file} DESTINATION iac_query)
