// The emulated machine: ranks and DPUs, their allocations, and their state.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <dpu_error.h>
#include <dpu_types.h>

#include "../shared/layout.h"
#include "profile.h"
#include "program.h"

// The changes that callbacks, and those who wait for one, wait for: a turn is taken, a rank is released.
namespace turns {

std::uint64_t count();
void signal();
// Waits until there are more than `seen`; `milliseconds`: at most as long, 0 without a limit.
void wait(std::uint64_t seen, unsigned milliseconds = 0);

} // namespace turns

struct dpu_t {
    dpu_rank_t *rank = nullptr;
    std::uint32_t number = 0; // in its rank
    std::uint8_t *slot = nullptr;
    std::shared_ptr<dpu_program_t> program;
    // Of dpu_prepare_xfer: a blocking callback prepares its transfers apart from those of the program.
    void *&buffer();

    shared::Control &control() const { return shared::control_of(slot); }
    std::uint8_t *wram() const { return slot + shared::WRAM_OFFSET; }
    std::uint8_t *mram() const { return slot + shared::MRAM_OFFSET; }
    const char *log() const { return reinterpret_cast<const char *>(slot + shared::LOG_OFFSET); }
    bool in_fault() const;
    bool dead() const { return control().died.load() == control().process.load(); }

  private:
    void *buffers_[2] = {};
};

// What waits for the launches before it. `callback`: the job is the turn of this callback, whose own thread takes it.
struct Job {
    std::function<dpu_error_t()> run;
    const void *callback;
};

struct dpu_rank_t {
    std::uint32_t number;
    std::vector<dpu_t> dpus;
    std::mutex lock;

    // Throws std::bad_alloc, or std::runtime_error when there is no process server; both have been said on stderr.
    dpu_rank_t(std::uint32_t number, std::uint32_t nr_dpus);
    ~dpu_rank_t();
    dpu_rank_t(const dpu_rank_t &) = delete;
    dpu_rank_t &operator=(const dpu_rank_t &) = delete;

    // The caller of all of these must hold the lock.

    // Starts a launch of the DPUs of a mask. They must be idle.
    void launch(std::uint64_t mask);
    // Whether a launch was started whose end was not yet waited for.
    bool running(std::uint64_t mask = ~0ull) const { return (running_ & mask) != 0; }
    // Collects the end of a launch; false if it still runs. `wait`: returns only when it has ended. The first caller
    // that finds a DPU in fault gets DPU_ERR_DPU_FAULT in `error`.
    bool finish(bool wait, dpu_error_t &error);
    // Replaces the processes of the DPUs of a mask by new ones with a program.
    bool start(std::uint64_t mask, const dpu_program_t &program);

    std::deque<Job> jobs;
    // The thread of the blocking callback that has the rank now: its calls happen at once, all others wait for its end.
    std::thread::id holder;
    // What went wrong while no function of the API waited; the next one returns it.
    dpu_error_t error = DPU_OK;

    bool held_here() const { return holder == std::this_thread::get_id(); }
    bool held_elsewhere() const { return holder != std::thread::id() && !held_here(); }
    // As in the SDK: an error drops what waits behind it in the queue.
    void fail(dpu_error_t what) {
        if (error == DPU_OK) error = what;
        if (!jobs.empty()) {
            jobs.clear();
            turns::signal();
        }
    }
    // Whether a launch may start now, because nothing was requested before it.
    bool open() const { return held_here() || (holder == std::thread::id() && jobs.empty()); }

  private:
    bool ended() const;
    void bury();
    void explain(dpu_t &dpu);
    void show_reports(const dpu_t &dpu) const;

    shared::Header &header() const { return *reinterpret_cast<shared::Header *>(memory_); }

    std::uint8_t *memory_ = nullptr;
    std::uint64_t running_ = 0; // a bit a DPU
    std::uint32_t process_ = 0; // the number of the newest processes
};

inline void *&dpu_t::buffer() { return buffers_[rank->held_here()]; }

// The result of dpu_alloc.
struct Allocation {
    std::vector<std::unique_ptr<dpu_rank_t>> owned;
    std::vector<dpu_rank_t *> ranks; // what the set points to
    Profile profile;
    // All programs that were loaded: host code may keep pointers to them. Ranks are loaded in parallel.
    std::mutex lock;
    std::vector<std::shared_ptr<dpu_program_t>> programs;
    // The callbacks that have not ended.
    std::atomic<unsigned> callbacks{0};
};

namespace machine {

// The number of DPUs: DPU_EMULATOR_NR_DPUS, or 256.
std::uint32_t nr_dpus();

// Ranks for a number of DPUs. On success the set is filled in.
dpu_error_t allocate(std::uint32_t nr_dpus, const Profile &profile, dpu_set_t &set);
dpu_error_t release(const dpu_set_t &set);

// The number of DPUs that are not allocated; whole ranks.
std::uint32_t free_dpus();

// The allocation that a set is a part of, or null: a set that was never allocated, or that is freed.
Allocation *find(const dpu_set_t &set);

} // namespace machine

// Whether this thread is a callback's on a set of the allocation.
bool in_callback_of(const Allocation &allocation);

// A set of which all ranks are locked: what every function of the API works on.
class Selection {
  public:
    explicit Selection(const dpu_set_t &set);

    // Whether there is such a set. All other functions require it.
    explicit operator bool() const { return allocation_ != nullptr; }
    bool one_dpu() const { return one_dpu_; }
    const std::vector<dpu_rank_t *> &ranks() const { return ranks_; }
    const std::vector<dpu_t *> &dpus() const { return dpus_; }
    Allocation &allocation() const { return *allocation_; }
    std::uint64_t mask(const dpu_rank_t &rank) const;

    // Waits for everything asked for before; an error of that is returned once.
    dpu_error_t settle();
    // As settle, but does not wait; `done`: whether nothing is left.
    dpu_error_t progress(bool &done);
    // As progress, of the thread of a callback: what went wrong is for the next function that the program calls.
    void advance_quietly();
    // Does something with each rank, after what was requested before: now, or in settle.
    dpu_error_t enqueue(const std::function<std::function<dpu_error_t()>(dpu_rank_t &)> &job);

    bool any_in_fault() const;
    // The program of all DPUs, or null and why in `error`.
    dpu_program_t *program(dpu_error_t &error) const;

  private:
    dpu_error_t advance(bool wait, bool &done);
    // Waits for a callback, without the locks: the callback may need them.
    void await_turn(std::uint64_t seen);

    Allocation *allocation_ = nullptr;
    bool one_dpu_ = false;
    std::vector<dpu_rank_t *> ranks_;
    std::vector<dpu_t *> dpus_;
    std::vector<std::unique_lock<std::mutex>> locks_;
};
