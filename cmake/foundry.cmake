# What all native parts are compiled with: warnings, and nothing in the result of where and when it was built.
# Conan names this file to CMake (foundry.profile); by hand: cmake -DCMAKE_TOOLCHAIN_FILE=cmake/foundry.cmake ...
include(${CMAKE_CURRENT_LIST_DIR}/reproducible.cmake)
foreach(language C CXX)
  string(APPEND CMAKE_${language}_FLAGS_INIT " -Wall -Wextra -Wdate-time")
endforeach()

# What is installed finds its libraries by where it is itself; no path of the build gets in, not even to be taken out.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "\$ORIGIN/../lib")
