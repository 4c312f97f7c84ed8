// Maps a DPU's memories at the addresses of abi.h, and checks the accesses of services.
#include "memory.h"

#include <cstring>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

#include "../shared/poison.h"
#include "rules.h"
#include "switch.h"

namespace {

constexpr std::size_t PAGE = 4096;

std::size_t whole_pages(std::size_t bytes) { return (bytes + PAGE - 1) & ~(PAGE - 1); }

std::uint8_t *map_at(std::uint32_t address, std::size_t bytes, int protection, int flags, int file,
                     std::size_t offset) {
    void *wanted = reinterpret_cast<void *>(std::uintptr_t{address});
    void *got =
        mmap(wanted, whole_pages(bytes), protection, flags | MAP_FIXED_NOREPLACE, file, static_cast<off_t>(offset));
    if (got != wanted) throw std::runtime_error(format("cannot map %zu bytes at 0x%08x", bytes, address));
    return static_cast<std::uint8_t *>(got);
}

// `mov edi, op` where there is one; `mov r11, target; jmp r11`.
void write_entry(std::uint8_t *at, void (*target)(), int op = -1) {
    if (op >= 0) {
        *at++ = 0xbf;
        std::uint32_t value = op;
        std::memcpy(at, &value, 4);
        at += 4;
    }
    const std::uint8_t move[] = {0x49, 0xbb}, jump[] = {0x41, 0xff, 0xe3};
    std::memcpy(at, move, 2);
    std::memcpy(at + 2, &target, 8);
    std::memcpy(at + 10, jump, 3);
}

} // namespace

Memory::Memory(std::uint8_t *slot, int rank, std::size_t offset, int code, const shared::Program &program)
    : program_(program), mram_(slot + shared::MRAM_OFFSET) {
    map_at(FOUNDRY_DPU_WRAM_BASE, program.heap_end - FOUNDRY_DPU_WRAM_BASE, PROT_READ | PROT_WRITE, MAP_SHARED, rank,
           offset + shared::WRAM_OFFSET);
    map_at(FOUNDRY_DPU_CODE_BASE, program.code_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, code, 0);

    constexpr int ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS;
    std::uint8_t *entries = map_at(FOUNDRY_DPU_SERVICE, PAGE, PROT_READ | PROT_WRITE, ANONYMOUS, -1, 0);
    std::memset(entries, 0xcc, PAGE); // int3: a jump past the entries is an illegal instruction
    write_entry(entries, foundry_service_entry);
    write_entry(entries + (FOUNDRY_DPU_YIELD - FOUNDRY_DPU_SERVICE), foundry_yield_entry);
    write_entry(entries + (FOUNDRY_DPU_ACCESS - FOUNDRY_DPU_SERVICE), foundry_access_entry);
    write_entry(entries + (FOUNDRY_DPU_EXIT - FOUNDRY_DPU_SERVICE), foundry_service_entry, FOUNDRY_DPU_OP_EXIT);
    mprotect(entries, PAGE, PROT_READ | PROT_EXEC);
    map_at(FOUNDRY_DPU_BUDGET, PAGE, PROT_READ | PROT_WRITE, ANONYMOUS, -1, 0);

    if (program.line_bytes != 0)
        map_at(FOUNDRY_DPU_COUNTERS_BASE, program.line_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rank,
               offset + shared::COUNTERS_OFFSET);

    // Compiled code always reads the shadows, even if nothing writes them.
    map_at(FOUNDRY_DPU_SHADOW_BASE, std::size_t{program.nr_tasklets} * FOUNDRY_DPU_SHADOW_STRIDE,
           PROT_READ | PROT_WRITE, ANONYMOUS | MAP_NORESERVE, -1, 0);
    notes_.resize(program.site_bytes + program.symbol_bytes);
    if (pread(code, notes_.data(), notes_.size(), shared::notes_offset(program)) != static_cast<ssize_t>(notes_.size()))
        throw std::runtime_error("cannot read the program's notes");

    for (std::uint32_t tasklet = 0; tasklet < program.nr_tasklets; tasklet++) {
        std::uint32_t bytes = 2 * program.stack_bytes[tasklet];
        std::uint8_t *stack = map_at(slack_bottom(tasklet), bytes, PROT_READ | PROT_WRITE, ANONYMOUS, -1, 0);
        shared::fill_poison(stack, whole_pages(bytes));
    }
}

void Memory::clear_counters() const {
    if (program_.line_bytes != 0) std::memset(at<void>(FOUNDRY_DPU_COUNTERS_BASE), 0, program_.line_bytes);
}

void Memory::count(std::uint32_t line, std::uint64_t instructions, std::uint64_t dma_cycles) const {
    // A program that writes here by mistake must not make the emulator write elsewhere.
    if (line - FOUNDRY_DPU_COUNTERS_BASE >= program_.line_bytes || line % FOUNDRY_DPU_LINE_ALIGNMENT != 0) return;
    at<std::uint64_t>(line)[0] += instructions;
    at<std::uint64_t>(line)[1] += dma_cycles;
}

void Memory::check_margins() const {
    auto check = [](std::uint32_t from, const char *what, std::uint32_t tasklet) {
        for (std::uint32_t address = from; address % PAGE != 0; address += 8)
            if (*at<std::uint64_t>(address) != shared::POISON)
                throw Broken{shared::Rule::wild_access, tasklet, address, 8,
                             format("something was written at 0x%08x, which is beyond the end of the %s, 0x%08x",
                                    address, what, from)};
    };
    check(program_.heap_end, "WRAM heap", shared::NO_TASKLET);
    for (std::uint32_t tasklet = 0; tasklet < program_.nr_tasklets; tasklet++)
        check(stack_top(tasklet), "tasklet's stack", tasklet);
}

std::uint32_t Memory::used_slack(std::uint32_t tasklet) const {
    std::uint32_t top = stack_top(tasklet), end = top - program_.stack_bytes[tasklet];
    for (std::uint32_t address = slack_bottom(tasklet); address < end; address += 8)
        if (*at<std::uint64_t>(address) != shared::POISON) {
            shared::fill_poison(at<void>(address), end - address);
            return top - address;
        }
    return 0;
}

void Memory::read(std::uint32_t mram, std::uint32_t wram, std::uint32_t bytes) {
    shared::copy_poisoned(at<void>(wram), mram_ + (mram - FOUNDRY_DPU_MRAM_BASE), bytes);
}

void Memory::write(std::uint32_t mram, std::uint32_t wram, std::uint32_t bytes) {
    shared::copy_poisoned(mram_ + (mram - FOUNDRY_DPU_MRAM_BASE), at<void>(wram), bytes);
}

void Memory::peek(std::uint32_t mram, void *to, std::uint32_t bytes) const {
    shared::copy_poisoned(to, mram_ + (mram - FOUNDRY_DPU_MRAM_BASE), bytes);
}

std::string Memory::site(std::uint32_t site) const {
    std::uint32_t offset = site - FOUNDRY_DPU_SITE_BASE;
    return offset < program_.site_bytes ? notes_.substr(offset, notes_.find('\0', offset) - offset) : "an unknown line";
}

std::string Memory::name(std::uint32_t address) const {
    for (std::size_t at = program_.site_bytes; at + 8 < notes_.size();) {
        std::uint32_t symbol[2];
        std::memcpy(symbol, notes_.data() + at, sizeof(symbol));
        std::size_t end = notes_.find('\0', at + sizeof(symbol));
        if (end == std::string::npos) break;
        std::string name = notes_.substr(at + sizeof(symbol), end - at - sizeof(symbol));
        if (std::uint32_t offset = address - symbol[0]; offset < symbol[1])
            return offset == 0 ? name : format("%s + %u bytes", name.c_str(), offset);
        at = end + 1;
    }
    return in_mram(address, 1) ? "the MRAM heap" : "the WRAM heap";
}

std::uint64_t Memory::word(std::uint32_t mram) const {
    std::uint64_t value;
    std::memcpy(&value, mram_ + (mram - FOUNDRY_DPU_MRAM_BASE), 8);
    return value ^ shared::POISON;
}

void Memory::set_word(std::uint32_t mram, std::uint64_t value) {
    value ^= shared::POISON;
    std::memcpy(mram_ + (mram - FOUNDRY_DPU_MRAM_BASE), &value, 8);
}

bool Memory::in_mram(std::uint32_t address, std::uint32_t bytes) {
    return address >= FOUNDRY_DPU_MRAM_BASE &&
           std::uint64_t{address} + bytes <= std::uint64_t{FOUNDRY_DPU_MRAM_BASE} + FOUNDRY_DPU_MRAM_SIZE;
}

void Memory::check_transfer(bool is_read, std::uint32_t tasklet, std::uint32_t mram, std::uint32_t wram,
                            std::uint32_t bytes) const {
    using shared::Rule;
    auto broken = [&](Rule rule, std::uint32_t address, const char *rule_text) {
        const char *name = is_read ? "mram_read" : "mram_write";
        std::uint32_t from = is_read ? mram : wram, to = is_read ? wram : mram;
        return Broken{rule, tasklet, address, bytes,
                      format("%s from 0x%08x to 0x%08x, %u bytes: %s", name, from, to, bytes, rule_text)};
    };
    if (bytes < 8 || bytes > 2048 || bytes % 8 != 0)
        throw broken(Rule::dma_size, mram,
                     "the size must be 8 to 2048 and a multiple of 8; hardware moves another number of bytes, and so does "
                     "the emulator with DPU_EMULATOR_MODE=hardware");
    for (bool in_mram : {true, false})
        if (std::uint32_t address = in_mram ? mram : wram; address % 8 != 0)
            throw broken(Rule::dma_alignment, address,
                         format("the %s address must be a multiple of 8; hardware drops its low 3 bits, and so does the "
                                "emulator with DPU_EMULATOR_MISALIGNED_DMA=truncate",
                                in_mram ? "MRAM" : "WRAM")
                             .c_str());
    if (!in_mram(mram, bytes)) throw broken(Rule::dma_mram_range, mram, "MRAM is 0x08000000 to 0x0c000000");
    if (!usable(wram, bytes))
        throw broken(
            Rule::dma_wram_range, wram,
            format("WRAM is 0x%08x to 0x%08x, and each tasklet's stack", FOUNDRY_DPU_WRAM_BASE, program_.heap_end)
                .c_str());
}
