# CharLS, JPEG-LS. Compiled here because distributions build it with its assertions on, which takes
# half its speed and lets a damaged payload end the process.

set(charls_tree ${pyjpegls_SOURCE}/lib/charls)
file(GLOB charls_sources ${charls_tree}/src/*.cpp)
add_library(charls STATIC ${charls_sources})
target_include_directories(charls SYSTEM PUBLIC ${charls_tree}/include)
target_compile_definitions(charls
  PUBLIC CHARLS_STATIC
  PRIVATE CHARLS_LIBRARY_BUILD NDEBUG)
