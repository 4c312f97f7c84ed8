// One launch: tasklets run natively one at a time, in the order of modelled time; services happen when that time comes.
//
// A tasklet runs ahead to its next event (a service, or the end of its budget). How many instructions it took says
// when, in modelled time, the event happens; until then others have their turns. So the order of events, and with it
// everything a program can observe through them, is a function of the program and its input alone.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "clocks.h"
#include "log.h"
#include "memory.h"
#include "pipeline.h"
#include "races.h"
#include "rules.h"
#include "signals.h"
#include "switch.h"
#include "synchronization.h"

class Scheduler {
  public:
    Scheduler(Memory &memory, shared::Control &control, Log &log);

    // Runs the program from all tasklets' entry to their end. Throws Broken at a fault. Fills in control.statistics
    // either way.
    void launch();

    // The address in the program's code where a tasklet last was, or 0; for the report of a fault.
    std::uint32_t code_address(std::uint32_t tasklet) const;
    // The addresses of the calls that have led there, the innermost first, as far as the stack tells.
    std::vector<std::uint32_t> calls(std::uint32_t tasklet) const;
    // The site of the service that a tasklet has asked for, or 0.
    std::uint32_t site_of(std::uint32_t tasklet) const { return tasklets_[tasklet].site; }

  private:
    enum class State {
        idle,     // not part of this launch, or ended
        issuing,  // in the pipeline, its event to come at `target`
        spinning, // in the pipeline, trying for a mutex
        dma,      // its transfer is in the DMA engine
        stopped,  // until another tasklet resumes it
    };
    struct Tasklet {
        Context context;
        State state = State::idle;
        Pipeline::Progress target = 0;
        std::uint32_t site = 0; // of the service that it has asked for
        std::uint32_t line = 0; // the address of that place's counters
        std::uint32_t caller = 0, call_site = 0; // see abi.h
        std::int32_t stack_left = 0;
        std::uint64_t turn = 0; // among equal targets, who came first
    };
    struct Transfer {
        std::uint32_t tasklet;
        bool is_read;
        bool scalar; // a word of an MRAM access without mram_read or mram_write
        std::uint32_t mram, wram, bytes;
        Pipeline::Time end;
    };
    // A read-modify-write of an 8-byte word of MRAM under way.
    struct SmallWrite {
        bool active = false;
        std::uint32_t mram = 0, bytes = 0;
        std::uint64_t value = 0, word = 0;
    };

    void start(std::uint32_t tasklet);
    void run(std::uint32_t tasklet);
    void serve(std::uint32_t tasklet);
    void go_on(std::uint32_t tasklet, std::uint64_t result = 0);

    void transfer(std::uint32_t tasklet, bool is_read, std::uint32_t mram, std::uint32_t wram, std::uint32_t bytes,
                  bool scalar);
    void finish_transfer();
    // Where in the program a tasklet asks for its service: a site, or an address in the code.
    std::uint32_t place(std::uint32_t tasklet) const;
    void mram_load(std::uint32_t tasklet, std::uint32_t mram, std::uint32_t bytes, bool is_volatile);
    void mram_store(std::uint32_t tasklet, std::uint32_t mram, std::uint32_t bytes, std::uint64_t value);
    void check_scalar(const char *what, std::uint32_t tasklet, std::uint32_t mram, std::uint32_t bytes) const;
    void reason(std::uint32_t tasklet, std::uint32_t reason, std::uint32_t address, std::uint32_t value);
    // Reports each tasklet that has used more stack than it has.
    void report_slack();
    [[noreturn]] void deadlock() const;
    std::uint64_t performance() const;

    Memory &memory_;
    shared::Control &control_;
    Log &log_;
    const shared::Program &program_;
    std::uint32_t nr_tasklets_;
    std::array<Tasklet, FOUNDRY_DPU_MAX_TASKLETS> tasklets_;
    Synchronization synchronization_;
    Races races_;
    std::array<SmallWrite, FOUNDRY_DPU_MAX_TASKLETS> writing_;
    unsigned nr_writing_ = 0;
    Pipeline pipeline_;
    std::deque<Transfer> transfers_;
    Pipeline::Time engine_free_ = 0;
    std::uint64_t turns_ = 0;
    unsigned in_pipeline_ = 0;
    std::uint32_t performance_kind_ = FOUNDRY_DPU_PERF_NOTHING;
    std::uint64_t performance_start_ = 0;
    // FOUNDRY_DPU_PERF_BOTH: the counts when it was configured last, and what they are counted from.
    struct Counts {
        std::uint64_t cycles, instructions;
    } both_ = {}, both_start_ = {};
    Counts both() const;
};
