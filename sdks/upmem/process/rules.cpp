// The rules' names, and text for messages.
#include "rules.h"

#include <cstdarg>
#include <cstdio>

const char *rule_name(shared::Rule rule) {
    switch (rule) {
    case shared::Rule::none: return "no rule";
    case shared::Rule::dma_alignment: return "misaligned DMA";
    case shared::Rule::dma_size: return "invalid DMA size";
    case shared::Rule::dma_mram_range: return "DMA outside MRAM";
    case shared::Rule::dma_wram_range: return "DMA outside WRAM";
    case shared::Rule::mram_scalar_alignment: return "misaligned MRAM access";
    case shared::Rule::mram_scalar_range: return "access outside MRAM";
    case shared::Rule::mram_race: return "data race in MRAM";
    case shared::Rule::wram_race: return "data race in WRAM";
    case shared::Rule::stack_overflow: return "stack overflow";
    case shared::Rule::wild_access: return "access outside WRAM";
    case shared::Rule::wram_alignment: return "misaligned WRAM access";
    case shared::Rule::illegal_instruction: return "illegal instruction";
    case shared::Rule::arithmetic: return "division by zero";
    case shared::Rule::barrier_count: return "barrier count";
    case shared::Rule::mutex_owner: return "mutex unlocked by a tasklet that does not hold it";
    case shared::Rule::semaphore: return "semaphore count";
    case shared::Rule::handshake: return "handshake";
    case shared::Rule::atomic_bit: return "atomic bit";
    case shared::Rule::tasklet_number: return "no such tasklet";
    case shared::Rule::deadlock: return "deadlock";
    case shared::Rule::runaway: return "run-away program";
    case shared::Rule::heap_full: return "WRAM heap exhausted";
    case shared::Rule::allocator: return "misuse of an allocator";
    case shared::Rule::assertion: return "assertion failed";
    case shared::Rule::halt: return "halt";
    case shared::Rule::service: return "unknown service";
    case shared::Rule::system_call: return "system call";
    case shared::Rule::print: return "printf";
    case shared::Rule::process_died: return "the DPU's process died";
    }
    return "unknown rule";
}

std::string format(const char *format, ...) {
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    std::string text(std::vsnprintf(nullptr, 0, format, list), '\0');
    std::vsnprintf(text.data(), text.size() + 1, format, again);
    va_end(again);
    va_end(list);
    return text;
}
