// A DPU's memories in its process: where they are mapped, and which accesses of services are allowed.
#pragma once

#include <cstdint>
#include <string>

#include "../shared/layout.h"

class Memory {
  public:
    // Maps WRAM, code, stacks, services' entries and the tasklets' counters at the addresses of abi.h.
    // `slot` is the DPU's slot, mapped; `rank` and `offset` say where in which file it is; `code` is the program's
    // text, with its notes behind.
    Memory(std::uint8_t *slot, int rank, std::size_t offset, int code, const shared::Program &program);

    // Moves one legal transfer's bytes.
    void read(std::uint32_t mram, std::uint32_t wram, std::uint32_t bytes);
    void write(std::uint32_t mram, std::uint32_t wram, std::uint32_t bytes);

    // Copies bytes of MRAM (a legal transfer's) to anywhere.
    void peek(std::uint32_t mram, void *to, std::uint32_t bytes) const;

    // The 8-byte word at an MRAM address that is in range and aligned.
    std::uint64_t word(std::uint32_t mram) const;
    void set_word(std::uint32_t mram, std::uint64_t value);

    // Whether all bytes of a range are the program's to use: globals and heap, or one tasklet's stack.
    bool usable(std::uint32_t address, std::uint32_t bytes) const {
        if (address - FOUNDRY_DPU_WRAM_BASE < FOUNDRY_DPU_WRAM_SIZE)
            return std::uint64_t{address} + bytes <= program_.heap_end;
        if (address < FOUNDRY_DPU_STACK_BASE) return false;
        std::uint32_t tasklet = (address - FOUNDRY_DPU_STACK_BASE) / FOUNDRY_DPU_STACK_SLOT;
        return tasklet < program_.nr_tasklets && address >= slack_bottom(tasklet) &&
               std::uint64_t{address} + bytes <= stack_top(tasklet);
    }
    static bool in_mram(std::uint32_t address, std::uint32_t bytes);
    // The address of an MRAM access as abi.h numbers it. A program may leave out the base: hardware ignores it, and all
    // other high bits, if the host asked for that.
    std::uint32_t mram_address(std::uint32_t address) const {
        if (program_.wrap_dma) address &= FOUNDRY_DPU_MRAM_SIZE - 1;
        return address < FOUNDRY_DPU_MRAM_SIZE ? address + FOUNDRY_DPU_MRAM_BASE : address;
    }
    // The address and the length of a DMA transfer as its engine sees them, if the host asked for that: without the low
    // 3 bits; and the length field has 8 bits for the number of words less one.
    std::uint32_t dma_address(std::uint32_t address) const { return program_.truncate_dma ? address & ~7u : address; }
    std::uint32_t dma_bytes(std::uint32_t bytes) const {
        return program_.wrap_dma ? (((bytes / 8 - 1) & 0xff) + 1) * 8 : bytes;
    }

    // The bytes at an address that usable() has found good.
    template <typename T> static T *at(std::uint32_t address) { return reinterpret_cast<T *>(std::uintptr_t{address}); }

    // Throws Broken unless the transfer keeps all rules.
    void check_transfer(bool is_read, std::uint32_t tasklet, std::uint32_t mram, std::uint32_t wram,
                        std::uint32_t bytes) const;

    // Bytes of its stack that a tasklet has used in this launch, if more than the stack has: our frames are larger than a
    // DPU's. Else 0. The slack is as new then.
    std::uint32_t used_slack(std::uint32_t tasklet) const;

    // A page may reach beyond the end of the heap or of a stack, where the DPU has another tasklet's stack. Throws Broken
    // if the program has written there. Called when a launch ends.
    void check_margins() const;

    // The counters by source line, in a program that has them: all 0 at the start of a launch; adds to those at an address.
    void clear_counters() const;
    void count(std::uint32_t line, std::uint64_t instructions, std::uint64_t dma_cycles) const;

    shared::Races races() const { return program_.races; }
    std::uint32_t nr_tasklets() const { return program_.nr_tasklets; }
    // The text of a site, see abi.h; and what a program calls the place of an address.
    std::string site(std::uint32_t site) const;
    std::string name(std::uint32_t address) const;

    // The lowest byte of the slack below a stack, see abi.h.
    static std::uint32_t slack_bottom(std::uint32_t tasklet) {
        return FOUNDRY_DPU_STACK_BASE + tasklet * FOUNDRY_DPU_STACK_SLOT + FOUNDRY_DPU_STACK_BOTTOM;
    }
    std::uint32_t stack_bytes(std::uint32_t tasklet) const { return program_.stack_bytes[tasklet]; }
    std::uint32_t stack_top(std::uint32_t tasklet) const {
        return slack_bottom(tasklet) + 2 * program_.stack_bytes[tasklet];
    }

  private:
    const shared::Program &program_;
    std::uint8_t *mram_;
    std::string notes_; // sites, then symbols
};
