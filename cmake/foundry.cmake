# What all native parts are compiled with: warnings, and nothing in the result of where and when it was built.
# Conan names this file to CMake (foundry.profile); by hand: cmake -DCMAKE_TOOLCHAIN_FILE=cmake/foundry.cmake ...
foreach(language C CXX ASM)
  string(APPEND CMAKE_${language}_FLAGS_INIT
    " -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build")
endforeach()
foreach(language C CXX)
  string(APPEND CMAKE_${language}_FLAGS_INIT " -Wall -Wextra -Wdate-time")
  # D: members without times and owners.
  set(CMAKE_${language}_ARCHIVE_CREATE "<CMAKE_AR> qcD <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_APPEND "<CMAKE_AR> qD <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_FINISH "<CMAKE_RANLIB> -D <TARGET>")
endforeach()

# What is installed finds its libraries by where it is itself; no path of the build gets in, not even to be taken out.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "\$ORIGIN/../lib")
