// The rules of transfers and the copying itself.
#include "transfer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <sys/mman.h>
#include <thread>

#include "../shared/poison.h"
#include "report.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 // Linux 5.14
#endif

namespace {

// Below this, starting a thread takes longer than copying.
constexpr std::size_t WORTH_THREADS = 1 << 20;
constexpr std::size_t MOST_THREADS = 8;
constexpr std::size_t PAGE = 4096;

bool in_wram(std::uint32_t address) {
    return address >= FOUNDRY_DPU_WRAM_BASE && address - FOUNDRY_DPU_WRAM_BASE < FOUNDRY_DPU_WRAM_SIZE;
}

// Whole pages that are about to be written: all at once is cheaper than one fault each. Where it fails, faults do it.
void populate(std::uint8_t *at, std::size_t bytes) {
    auto first = (reinterpret_cast<std::uintptr_t>(at) + PAGE - 1) & ~(PAGE - 1);
    auto end = (reinterpret_cast<std::uintptr_t>(at) + bytes) & ~(PAGE - 1);
    if (end > first + 16 * PAGE) madvise(reinterpret_cast<void *>(first), end - first, MADV_POPULATE_WRITE);
}

void move_one(const Move &one, const Range &range, bool to_dpu) {
    if (in_mram(range.address)) {
        std::uint8_t *kept = one.dpu->mram() + (range.address - FOUNDRY_DPU_MRAM_BASE);
        if (to_dpu) {
            populate(kept, range.bytes);
            shared::copy_poisoned(kept, one.host, range.bytes);
        } else {
            shared::copy_poisoned(one.host, kept, range.bytes);
        }
        return;
    }
    std::uint8_t *kept = one.dpu->wram() + (range.address - FOUNDRY_DPU_WRAM_BASE);
    if (to_dpu)
        std::memcpy(kept, one.host, range.bytes);
    else
        std::memcpy(one.host, kept, range.bytes);
}

} // namespace

bool in_mram(std::uint32_t address) {
    return address >= FOUNDRY_DPU_MRAM_BASE && address - FOUNDRY_DPU_MRAM_BASE < FOUNDRY_DPU_MRAM_SIZE;
}

dpu_error_t range_of(const char *what, dpu_symbol_t symbol, std::uint32_t offset, std::size_t bytes, Range &range) {
    std::uint64_t end = std::uint64_t{offset} + bytes;
    if (bytes > symbol.size || end > symbol.size)
        return refuse(DPU_ERR_INVALID_SYMBOL_ACCESS, "%s: offset %u and %zu bytes reach beyond its %u bytes", what,
                      offset, bytes, symbol.size);
    std::uint32_t address = symbol.address + offset;
    std::uint64_t last = std::uint64_t{symbol.address} + end - (end > 0);
    if (in_mram(symbol.address) && last < std::uint64_t{FOUNDRY_DPU_MRAM_BASE} + FOUNDRY_DPU_MRAM_SIZE) {
        if (address % 8 != 0 || bytes % 8 != 0)
            return refuse(DPU_ERR_INVALID_MRAM_ACCESS,
                          "%s: offset %u (MRAM address 0x%08x) and %zu bytes: address and size must be multiples of 8",
                          what, offset, address, bytes);
    } else if (in_wram(symbol.address) && last < std::uint64_t{FOUNDRY_DPU_WRAM_BASE} + FOUNDRY_DPU_WRAM_SIZE) {
        if (address % 4 != 0 || bytes % 4 != 0)
            return refuse(DPU_ERR_INVALID_WRAM_ACCESS,
                          "%s: offset %u (WRAM address 0x%08x) and %zu bytes: address and size must be multiples of 4",
                          what, offset, address, bytes);
    } else {
        return refuse(in_mram(symbol.address) ? DPU_ERR_INVALID_MRAM_ACCESS : DPU_ERR_INVALID_WRAM_ACCESS,
                      "%s: 0x%08x and %zu bytes lie in neither MRAM nor WRAM", what, address, bytes);
    }
    range = {address, bytes};
    return DPU_OK;
}

void move(const std::vector<Move> &moves, const Range &range, bool to_dpu) {
    std::size_t total = moves.size() * range.bytes;
    std::size_t threads =
        total < WORTH_THREADS ? 1 : std::min<std::size_t>(std::thread::hardware_concurrency(), MOST_THREADS);
    threads = std::min(threads, moves.size());
    std::atomic<std::size_t> next = 0;
    auto work = [&] {
        for (std::size_t i; (i = next.fetch_add(1)) < moves.size();) move_one(moves[i], range, to_dpu);
    };
    std::vector<std::thread> others;
    try {
        while (others.size() + 1 < threads) others.emplace_back(work);
    } catch (const std::system_error &) {
        // Fewer threads than requested: the others do all the work.
    }
    work();
    for (std::thread &other : others) other.join();
}
