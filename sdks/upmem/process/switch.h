// Switching between the scheduler's stack and a tasklet's: what switch.S saves and where.
#pragma once

#include <cstddef>
#include <cstdint>

// A tasklet that is not running. switch.S knows the offsets.
struct Context {
    std::uint64_t rsp, rbx, rbp, r12, r13, r14, r15;
    // What the tasklet asked for when it stopped, and what it is to get.
    std::uint32_t op, a, b, c;
    std::uint64_t result;
    // Not 0: it stopped in __foundry_yield, and all registers have to come back.
    std::uint64_t full;
    std::uint64_t scratch[9]; // rax rcx rdx rsi rdi r8 r9 r10, one unused
    alignas(16) std::uint8_t vectors[16][16];
};
static_assert(offsetof(Context, op) == 56);
static_assert(offsetof(Context, result) == 72);
static_assert(offsetof(Context, full) == 80);
static_assert(offsetof(Context, scratch) == 88);
static_assert(offsetof(Context, vectors) == 160);

// Context::op of a tasklet that a signal has stopped for good.
inline constexpr std::uint32_t OP_SIGNAL = 0xffffffff;
// And of one that an access, reported by __foundry_access, has stopped for good.
inline constexpr std::uint32_t OP_RACE = 0xfffffffe;

extern "C" {
// Runs the tasklet until it calls a service, or a signal handler returns into foundry_abandon.
void foundry_resume(Context *context);
void foundry_service_entry();
void foundry_yield_entry();
void foundry_access_entry();
// Looks at an access, if it concerns no other tasklet: returns whether it does not. Keeps the vector registers.
bool foundry_access_own(std::uint32_t address, std::uint32_t what, std::uint32_t site, std::uint64_t value,
                        std::uint32_t code);
// Looks at any access; `code`: where the program calls. Returns whether it is a race.
bool foundry_access(std::uint32_t address, std::uint32_t what, std::uint32_t site, std::uint64_t value,
                    std::uint32_t code);
void foundry_abandon();
// The running tasklet, or null while the scheduler runs.
extern Context *volatile foundry_current;
}
