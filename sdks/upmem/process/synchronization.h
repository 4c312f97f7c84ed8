// Barriers, mutexes, semaphores, handshakes, atomic bits and stopped tasklets: which tasklets wait, which continue, and
// which know what others have done.
//
// Objects are known by their address in the program. A launch begins with all atomic bits released, as by the SDK's
// start-up: nobody holds a mutex. The counts of barriers and semaphores are in WRAM, which survives a launch.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "clocks.h"
#include "memory.h"

class Synchronization {
  public:
    static constexpr int NOBODY = -1;
    using Mask = std::uint32_t; // a bit a tasklet

    Synchronization(const Memory &memory, std::uint32_t nr_tasklets) : memory_(memory), nr_tasklets_(nr_tasklets) {}

    // A new launch: all tasklets start, knowing of everything before, and hold and wait for nothing.
    void begin();

    // The tasklets that go on, the caller among them: none while others are missing.
    Mask barrier_wait(std::uint32_t tasklet, std::uint32_t address);
    // Whether the caller holds it now; otherwise it waits, trying again and again.
    bool mutex_lock(std::uint32_t tasklet, std::uint32_t id);
    bool mutex_try(std::uint32_t tasklet, std::uint32_t id);
    // The waiting tasklet that holds it now, or NOBODY.
    int mutex_unlock(std::uint32_t tasklet, std::uint32_t id);
    // Whether the caller goes on.
    bool semaphore_take(std::uint32_t tasklet, std::uint32_t address);
    // The tasklet that goes on beside the caller, or NOBODY.
    int semaphore_give(std::uint32_t tasklet, std::uint32_t address);
    // The partner that has been waiting and goes on, or NOBODY: then the caller waits.
    int handshake_wait_for(std::uint32_t tasklet, std::uint32_t notifier);
    int handshake_notify(std::uint32_t tasklet);
    // Whether the bit was free.
    bool acquire(std::uint32_t tasklet, std::uint32_t bit);
    void release(std::uint32_t tasklet, std::uint32_t bit);
    // Whether the caller stops; whether the other one goes on.
    bool stop(std::uint32_t tasklet);
    bool resume(std::uint32_t tasklet, std::uint32_t other);

    // A tasklet has seen, waiting in a loop for it, something that another one has written: it knows of all that this
    // one has done by now.
    void learn(std::uint32_t tasklet, std::uint32_t writer);

    const Clock &clock(std::uint32_t tasklet) const { return clocks_[tasklet]; }
    // What a tasklet waits for, for the report of a deadlock; empty if nothing.
    const std::string &waits_for(std::uint32_t tasklet) const { return waits_[tasklet]; }

  private:
    struct Barrier {
        Mask arrived = 0;
        Clock clock;
    };
    struct Mutex {
        int owner = NOBODY;
        std::deque<std::uint32_t> waiting;
        Clock clock;
    };
    struct Semaphore {
        std::deque<std::uint32_t> waiting;
        Clock clock;
    };
    struct Bit {
        bool taken = false;
        Clock clock;
    };

    // Marks what `tasklet` did so far as known to others from here on; what it does next is not.
    void publish(std::uint32_t tasklet, Clock &to);
    void go_on(std::uint32_t tasklet, const Clock &learned);
    std::uint8_t *object(std::uint32_t tasklet, std::uint32_t address, const char *what) const;

    const Memory &memory_;
    std::uint32_t nr_tasklets_;
    std::array<Clock, FOUNDRY_DPU_MAX_TASKLETS> clocks_;
    std::array<std::string, FOUNDRY_DPU_MAX_TASKLETS> waits_;
    std::map<std::uint32_t, Barrier> barriers_;
    std::map<std::uint32_t, Mutex> mutexes_;
    std::map<std::uint32_t, Semaphore> semaphores_;
    std::array<Bit, 256> bits_;
    std::array<int, FOUNDRY_DPU_MAX_TASKLETS> handshakes_; // who waits at this notifier; itself, if it does
    Mask stopped_ = 0, resumed_ = 0;
};
