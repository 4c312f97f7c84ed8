// The memory that the host library and the DPU processes of a rank share: one sparse file in memory a rank.
//
// A header, then one slot a DPU: its control block, its WRAM, its counters by source line, its log, its MRAM. The host never touches WRAM and MRAM
// while the DPU runs, and the DPU process never while it does not.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <sys/types.h>

#include "../abi/abi.h"

namespace shared {

inline constexpr std::uint32_t DPUS_PER_RANK = 64;

inline constexpr std::size_t HEADER_BYTES = 0x1000;
inline constexpr std::size_t CONTROL_BYTES = 0x4000;
inline constexpr std::size_t REPORT_BYTES = 0x2000;
inline constexpr std::size_t LOG_BYTES = 0x100000; // as large as the SDK's default buffer for printf

// Offsets in a slot.
inline constexpr std::size_t CONTROL_OFFSET = 0;
inline constexpr std::size_t WRAM_OFFSET = 0x10000;
inline constexpr std::size_t COUNTERS_OFFSET = 0x20000;
inline constexpr std::size_t LOG_OFFSET = 0x100000;
inline constexpr std::size_t MRAM_OFFSET = 0x200000;
inline constexpr std::size_t SLOT_BYTES = MRAM_OFFSET + FOUNDRY_DPU_MRAM_SIZE;

inline constexpr std::size_t COUNTERS_BYTES = LOG_OFFSET - COUNTERS_OFFSET;

inline constexpr std::size_t slot_offset(std::uint32_t dpu) { return 0x200000 + dpu * SLOT_BYTES; }
inline constexpr std::size_t rank_bytes(std::uint32_t nr_dpus) { return slot_offset(nr_dpus); }

// Which rule a program broke. The names are what messages and tests show: see rule_name().
enum class Rule : std::uint32_t {
    none,
    dma_alignment,
    dma_size,
    dma_mram_range,
    dma_wram_range,
    mram_scalar_alignment,
    mram_scalar_range,
    mram_race,
    wram_race,
    stack_overflow,
    wild_access,
    wram_alignment,
    illegal_instruction,
    arithmetic,
    barrier_count,
    mutex_owner,
    semaphore,
    handshake,
    atomic_bit,
    tasklet_number,
    deadlock,
    runaway,
    heap_full,
    allocator,
    assertion,
    halt,
    service,
    system_call,
    print,
    process_died,
};

struct Fault {
    Rule rule;
    std::uint32_t tasklet; // NO_TASKLET where it is not one tasklet's doing
    std::uint32_t address;
    std::uint32_t size;
    std::uint32_t code_address; // in the DPU program, where known
    char message[1024];
};

inline constexpr std::uint32_t NO_TASKLET = 0xffffffff;

// Modelled figures of the last launch, see model/cycles.def.
struct Statistics {
    std::uint64_t cycles;
    std::uint64_t instructions;
    std::uint64_t dma_read_bytes;
    std::uint64_t dma_write_bytes;
    std::uint64_t dma_transfers;
    std::uint64_t dma_cycles;
};

// What becomes of a data race.
enum class Races : std::uint32_t {
    fault,  // the launch ends
    report, // it is reported, and the launch continues
    ignore, // nothing is checked
};

struct Program {
    std::uint32_t entry;
    std::uint32_t code_bytes;
    std::uint32_t nr_tasklets;
    std::uint32_t heap_end;
    std::uint32_t stack_bytes[FOUNDRY_DPU_MAX_TASKLETS];
    std::uint64_t max_cycles;
    Races races;
    // After the code, in its file (see notes_offset): the program's sites (abi.h), then its symbols, each an address and
    // a size (32 bits) and a zero-terminated name.
    std::uint32_t site_bytes, symbol_bytes;
    std::uint32_t line_bytes;   // of the counters by source line; 0: the program does not count by line
    std::uint32_t truncate_dma; // not 0: a DMA transfer drops the low 3 bits of addresses, as hardware does
    std::uint32_t wrap_dma;     // not 0: a DMA transfer's length and MRAM address wrap around, as on hardware
};

// Notes do not share a page with code.
inline off_t notes_offset(const Program &program) { return (program.code_bytes + 0xfffu) & ~0xfffu; }

struct Control {
    // Written by the host: the number of launches asked for; a futex on which the DPU process waits.
    std::atomic<std::uint32_t> asked;
    // The number of launches that have ended. Raised by the DPU process, or in its place, once it has died, by the
    // server or by the host: whoever raises it also does what follows an end.
    std::atomic<std::uint32_t> ended;
    // Processes of this DPU are numbered from 1, one for each load: the newest one that the host requested, and the
    // last one that the server has seen die by itself.
    std::atomic<std::uint32_t> process;
    std::atomic<std::uint32_t> died;
    std::int32_t wait_status; // of the one that died
    std::uint32_t in_fault;
    std::uint32_t log_bytes;
    std::uint32_t log_dropped;
    Program program;
    Statistics statistics;
    Fault fault;
    // What the last launch reports without being in fault: zero-terminated texts, and how many more there were.
    std::uint32_t report_bytes;
    std::uint32_t reports_dropped;
    char reports[REPORT_BYTES];
};
static_assert(sizeof(Control) <= CONTROL_BYTES);

struct Header {
    std::atomic<std::uint32_t> running; // DPUs whose launch has not ended
    std::atomic<std::uint32_t> ends;    // counts ends; a futex, woken when none is running any more
};
static_assert(sizeof(Header) <= HEADER_BYTES);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// The control block of a slot, given the slot's first byte.
inline Control &control_of(std::uint8_t *slot) { return *reinterpret_cast<Control *>(slot + CONTROL_OFFSET); }

// Records that the launch `asked` has ended, unless somebody has recorded it before, and wakes the host.
bool record_end(Header &header, Control &control, std::uint32_t asked);

// Linux futexes on shared memory. wait returns when `word` may differ from `seen`, or after the time, in seconds.
void futex_wait(std::atomic<std::uint32_t> &word, std::uint32_t seen, int seconds);
void futex_wake(std::atomic<std::uint32_t> &word);

} // namespace shared
