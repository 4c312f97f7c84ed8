# What CMake projects of host programs include for the paths of the host API.
get_filename_component(DPU_HOST_HOME "${CMAKE_CURRENT_LIST_DIR}/../../../../.." ABSOLUTE)
set(DPU_HOST_INCLUDE_DIRECTORIES "${DPU_HOST_HOME}/include/dpu")
set(DPU_HOST_LINK_DIRECTORIES "${DPU_HOST_HOME}/lib")
set(DPU_HOST_LIBRARIES "${DPU_HOST_HOME}/lib/libdpu.so")
