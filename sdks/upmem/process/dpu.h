// One DPU: the life of its process, from the fork to its end.
#pragma once

#include <cstdint>

// Serves launches until it is killed, or the program faults. `rank` is the rank's memory, `dpu` the DPU in it,
// `process` the number that the host has given this process, `code` the program's text. Does not return.
[[noreturn]] void be_dpu(int rank, std::uint32_t rank_number, std::uint32_t dpu, std::uint32_t process, int code);
