// Signal handlers: where a tasklet was, what it touched, and back to the scheduler.
#include "signals.h"

#include <csignal>
#include <cstdlib>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include "switch.h"

namespace {

constexpr int WATCH_SECONDS = 2;

struct {
    int number;
    std::uint64_t address, code, stack;
} last;

// switches at the watch's last tick.
std::uint64_t seen;

void handle(int number, siginfo_t *info, void *extra) {
    auto &registers = static_cast<ucontext_t *>(extra)->uc_mcontext.gregs;
    Context *running = foundry_current;
    if (number == SIGVTALRM) {
        bool stuck = running && seen == switches;
        seen = switches;
        if (!stuck) return;
    } else if (!running) {
        std::signal(number, SIG_DFL); // the emulator's own fault: comes again, and ends the process
        return;
    }
    last = {number, reinterpret_cast<std::uint64_t>(info->si_addr), static_cast<std::uint64_t>(registers[REG_RIP]),
            static_cast<std::uint64_t>(registers[REG_RSP])};
    running->op = OP_SIGNAL;
    running->rsp = last.stack;
    registers[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(foundry_abandon));
}

} // namespace

volatile std::uint64_t switches;

void install_signal_handlers() {
    constexpr std::size_t BYTES = 0x10000;
    stack_t stack = {};
    stack.ss_sp = mmap(nullptr, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack.ss_size = BYTES;
    sigaltstack(&stack, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGVTALRM})
        sigaction(number, &action, nullptr);
}

void watch(bool on) {
    itimerval timer = {};
    if (on) timer.it_value.tv_sec = timer.it_interval.tv_sec = WATCH_SECONDS;
    setitimer(ITIMER_VIRTUAL, &timer, nullptr);
}

std::uint32_t signal_code_address() { return last.code <= UINT32_MAX ? static_cast<std::uint32_t>(last.code) : 0; }

Broken broken_by_signal(const Memory &memory, std::uint32_t nr_tasklets, std::uint32_t tasklet) {
    using shared::Rule;
    auto address = static_cast<std::uint32_t>(last.address);
    switch (last.number) {
    case 0: return {Rule::service, tasklet, OP_SIGNAL, 0, "the program asks for a service that there is not"};
    case SIGFPE: return {Rule::arithmetic, tasklet, 0, 0, "an integer is divided by 0"};
    case SIGILL:
    case SIGTRAP:
        return {Rule::illegal_instruction, tasklet, signal_code_address(), 0,
                "the program runs into what is no instruction of it"};
    case SIGSYS: return {Rule::system_call, tasklet, signal_code_address(), 0, "a DPU has no operating system"};
    case SIGVTALRM:
        return {
            Rule::runaway, tasklet, signal_code_address(), 0,
            format("the tasklet has run for %d seconds of processor time without coming to any event", WATCH_SECONDS)};
    default: break;
    }
    for (std::uint32_t i = 0; i < nr_tasklets; i++) {
        std::uint32_t slack = memory.slack_bottom(i), bytes = memory.stack_bytes(i);
        if (last.address >= slack - FOUNDRY_DPU_STACK_BOTTOM && last.address < slack)
            return {Rule::stack_overflow, tasklet, address, bytes,
                    format("an access at 0x%08x, %u bytes below the stack of tasklet %u, which has %u bytes "
                           "(STACK_SIZE_DEFAULT)",
                           address, slack + bytes - address, i, bytes)};
    }
    const char *where = "there is no memory";
    if (last.address == last.code)
        return {Rule::wild_access, tasklet, address, 0, format("a jump to 0x%08x: no code is there", address)};
    if (address >= FOUNDRY_DPU_MRAM_BASE && address < FOUNDRY_DPU_MRAM_BASE + FOUNDRY_DPU_MRAM_SIZE)
        where = "this is MRAM, which only DMA and __mram_ptr accesses reach";
    else if (address < 0x1000)
        where = "a null pointer, or close to one";
    else if (address >= FOUNDRY_DPU_WRAM_BASE && address < FOUNDRY_DPU_WRAM_BASE + FOUNDRY_DPU_WRAM_SIZE)
        where = "this is beyond the WRAM heap, where the stacks are";
    else if (address >= FOUNDRY_DPU_CODE_BASE && address < FOUNDRY_DPU_CODE_BASE + FOUNDRY_DPU_CODE_SIZE)
        where = "this is IRAM, which cannot be written";
    return {Rule::wild_access, tasklet, address, 0, format("an access at 0x%08x: %s", address, where)};
}
