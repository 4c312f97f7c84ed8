# Check that a library needs nothing but the C library, and no newer one than the oldest that it must run on: that of
# Ubuntu 22.04, 2.35 (Debian 12 has 2.36). A wheel's tag of manylinux_2_35 promises the same.
#   cmake -DLIBRARY=FILE -DREADELF=PROGRAM -P portable.cmake
set(NEWEST 2.35)

function(readelf option result)
  execute_process(COMMAND ${READELF} --wide ${option} ${LIBRARY} OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
  set(${result} "${printed}" PARENT_SCOPE)
endfunction()

readelf(--dynamic dynamic)
string(REGEX MATCHALL "Shared library: \\[[^]]*" needed "${dynamic}")
foreach(each IN LISTS needed)
  string(REGEX REPLACE ".*\\[" "" name "${each}")
  if(NOT name MATCHES "^(libc\\.so\\.6|libdl\\.so\\.2|ld-linux-x86-64\\.so\\.2)$")
    message(FATAL_ERROR "${LIBRARY} needs ${name}, which a machine may not have")
  endif()
endforeach()

readelf(--version-info versions)
string(REGEX MATCHALL "GLIBC_[A-Z0-9._]+" used "${versions}")
if(NOT used)
  message(FATAL_ERROR "${READELF} names no version of the C library that ${LIBRARY} needs")
endif()
list(REMOVE_DUPLICATES used)
foreach(each IN LISTS used)
  string(REPLACE "GLIBC_" "" version ${each})
  if(NOT version MATCHES "^[0-9.]+$" OR version VERSION_GREATER NEWEST)
    message(FATAL_ERROR "${LIBRARY} needs ${each}, and must run with glibc ${NEWEST}")
  endif()
endforeach()
