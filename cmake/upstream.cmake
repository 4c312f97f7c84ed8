# What upstream's own projects are compiled with, LLVM first of all: the clang and lld of the image, through ccache, and
# nothing in the result of where and when it was built. No warnings: they are upstream's to read.
# The presets in CMakePresets.json name this file; by hand: cmake -DCMAKE_TOOLCHAIN_FILE=cmake/upstream.cmake ...
file(GLOB FOUNDRY_LLVM LIST_DIRECTORIES true /usr/lib/llvm-*)
list(SORT FOUNDRY_LLVM COMPARE NATURAL ORDER DESCENDING)
foreach(llvm IN LISTS FOUNDRY_LLVM)
  if(EXISTS ${llvm}/bin/clang++ AND EXISTS ${llvm}/bin/ld.lld)
    set(CMAKE_C_COMPILER ${llvm}/bin/clang)
    set(CMAKE_CXX_COMPILER ${llvm}/bin/clang++)
    break()
  endif()
endforeach()
if(NOT CMAKE_CXX_COMPILER)
  message(FATAL_ERROR "no clang with lld below /usr/lib/llvm-*: upstream's sources are built in an image that has both")
endif()
set(CMAKE_ASM_COMPILER ${CMAKE_C_COMPILER})
set(CMAKE_LINKER_TYPE LLD)

find_program(FOUNDRY_CCACHE ccache)
if(FOUNDRY_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${FOUNDRY_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FOUNDRY_CCACHE})
endif()

include(${CMAKE_CURRENT_LIST_DIR}/reproducible.cmake)
foreach(language C CXX)
  string(APPEND CMAKE_${language}_FLAGS_INIT " -w")
endforeach()
