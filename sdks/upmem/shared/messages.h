// Messages of the host library to the process server: datagrams on a SOCK_SEQPACKET socket, some with a descriptor.
#pragma once

#include <cstdint>

namespace shared {

enum class Request : std::uint32_t {
    add_rank,    // with the rank's memory as a descriptor
    remove_rank, // ends the rank's DPU processes
    start,       // starts the DPUs of `mask`, ending older processes of theirs; with the program's code as a descriptor
    stop,        // ends the processes of the DPUs of `mask`
};

struct Message {
    Request request;
    std::uint32_t rank;
    std::uint32_t nr_dpus;
    std::uint32_t process; // start: the number of the new processes
    std::uint64_t mask;
};

// The descriptor on which the server finds its socket, and the host's process id as its only argument.
inline constexpr int SERVER_SOCKET = 3;

} // namespace shared
