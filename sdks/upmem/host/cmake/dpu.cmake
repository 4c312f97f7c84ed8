# The toolchain file of DPU programs: cmake -DCMAKE_TOOLCHAIN_FILE=$UPMEM_HOME/share/upmem/cmake/dpu.cmake
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR dpu)
get_filename_component(UPMEM_HOME "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

set(CMAKE_C_COMPILER "${UPMEM_HOME}/bin/dpu-upmem-dpurte-clang")
# Only for CMake: a project that names no languages has C++, too.
set(CMAKE_CXX_COMPILER "${UPMEM_HOME}/bin/dpu-upmem-dpurte-clang")
set(CMAKE_AR "${UPMEM_HOME}/bin/llvm-ar" CACHE FILEPATH "Archiver of DPU objects")
set(CMAKE_RANLIB "${UPMEM_HOME}/bin/llvm-ranlib" CACHE FILEPATH "Indexer of DPU archives")

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
