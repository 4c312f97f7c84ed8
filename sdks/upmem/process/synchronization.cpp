// The rules of barriers, mutexes, semaphores, handshakes and atomic bits.
#include "synchronization.h"

#include "rules.h"

using shared::Rule;

namespace {

// Bytes of barriers and semaphores in the program's memory, see abi.h.
constexpr int COUNT = 1, INITIAL_COUNT = 2;
constexpr std::uint32_t OBJECT_BYTES = 4;

} // namespace

void Synchronization::begin() {
    Clock all;
    for (const Clock &clock : clocks_) all.join(clock);
    for (std::uint32_t i = 0; i < nr_tasklets_; i++) {
        clocks_[i] = all;
        clocks_[i].at[i]++;
        waits_[i].clear();
    }
    barriers_.clear();
    mutexes_.clear();
    semaphores_.clear();
    bits_ = {};
    handshakes_.fill(NOBODY);
    stopped_ = resumed_ = 0;
}

void Synchronization::publish(std::uint32_t tasklet, Clock &to) {
    to.join(clocks_[tasklet]);
    clocks_[tasklet].at[tasklet]++;
}

void Synchronization::learn(std::uint32_t tasklet, std::uint32_t writer) { publish(writer, clocks_[tasklet]); }

void Synchronization::go_on(std::uint32_t tasklet, const Clock &learned) {
    clocks_[tasklet].join(learned);
    waits_[tasklet].clear();
}

std::uint8_t *Synchronization::object(std::uint32_t tasklet, std::uint32_t address, const char *what) const {
    if (!memory_.usable(address, OBJECT_BYTES))
        throw Broken{Rule::wild_access, tasklet, address, OBJECT_BYTES,
                     format("a %s at 0x%08x is not in WRAM", what, address)};
    return Memory::at<std::uint8_t>(address);
}

Synchronization::Mask Synchronization::barrier_wait(std::uint32_t tasklet, std::uint32_t address) {
    std::uint8_t *bytes = object(tasklet, address, "barrier");
    if (bytes[INITIAL_COUNT] == 0 || bytes[INITIAL_COUNT] > nr_tasklets_)
        throw Broken{Rule::barrier_count, tasklet, address, bytes[INITIAL_COUNT],
                     format("the barrier at 0x%08x is for %u tasklets, the program has NR_TASKLETS = %u", address,
                            bytes[INITIAL_COUNT], nr_tasklets_)};
    Barrier &barrier = barriers_[address];
    publish(tasklet, barrier.clock);
    barrier.arrived |= Mask{1} << tasklet;
    bytes[COUNT]--;
    if (static_cast<unsigned>(__builtin_popcount(barrier.arrived)) < bytes[INITIAL_COUNT]) {
        waits_[tasklet] = format("at the barrier at 0x%08x", address);
        return 0;
    }
    bytes[COUNT] = bytes[INITIAL_COUNT];
    Mask all = barrier.arrived;
    for (std::uint32_t i = 0; i < nr_tasklets_; i++)
        if (all >> i & 1) go_on(i, barrier.clock);
    barrier = {}; // the next tasklets may be others
    return all;
}

bool Synchronization::mutex_try(std::uint32_t tasklet, std::uint32_t id) {
    Mutex &mutex = mutexes_[id];
    if (mutex.owner != NOBODY) return false;
    mutex.owner = static_cast<int>(tasklet);
    go_on(tasklet, mutex.clock);
    return true;
}

bool Synchronization::mutex_lock(std::uint32_t tasklet, std::uint32_t id) {
    if (mutex_try(tasklet, id)) return true;
    Mutex &mutex = mutexes_[id];
    if (mutex.owner == static_cast<int>(tasklet))
        throw Broken{Rule::deadlock, tasklet, id, 0,
                     format("the tasklet locks the mutex 0x%08x, which it holds already", id)};
    mutex.waiting.push_back(tasklet);
    waits_[tasklet] = format("for the mutex 0x%08x, which tasklet %d holds", id, mutex.owner);
    return false;
}

int Synchronization::mutex_unlock(std::uint32_t tasklet, std::uint32_t id) {
    Mutex &mutex = mutexes_[id];
    if (mutex.owner != static_cast<int>(tasklet)) {
        std::string holder = mutex.owner == NOBODY ? "nobody holds" : format("tasklet %d holds", mutex.owner);
        throw Broken{Rule::mutex_owner, tasklet, id, 0,
                     format("the tasklet unlocks the mutex 0x%08x, which %s", id, holder.c_str())};
    }
    publish(tasklet, mutex.clock);
    mutex.owner = NOBODY;
    if (mutex.waiting.empty()) return NOBODY;
    std::uint32_t next = mutex.waiting.front();
    mutex.waiting.pop_front();
    mutex.owner = static_cast<int>(next);
    go_on(next, mutex.clock);
    return mutex.owner;
}

bool Synchronization::semaphore_take(std::uint32_t tasklet, std::uint32_t address) {
    std::uint8_t *bytes = object(tasklet, address, "semaphore");
    Semaphore &semaphore = semaphores_[address];
    auto count = static_cast<std::int8_t>(bytes[COUNT]);
    if (count == INT8_MIN) throw Broken{Rule::semaphore, tasklet, address, OBJECT_BYTES, "the count falls below -128"};
    bytes[COUNT] = static_cast<std::uint8_t>(--count);
    if (count >= 0) {
        go_on(tasklet, semaphore.clock);
        return true;
    }
    semaphore.waiting.push_back(tasklet);
    waits_[tasklet] = format("for the semaphore at 0x%08x", address);
    return false;
}

int Synchronization::semaphore_give(std::uint32_t tasklet, std::uint32_t address) {
    std::uint8_t *bytes = object(tasklet, address, "semaphore");
    Semaphore &semaphore = semaphores_[address];
    auto count = static_cast<std::int8_t>(bytes[COUNT]);
    if (count == INT8_MAX) throw Broken{Rule::semaphore, tasklet, address, OBJECT_BYTES, "the count rises above 127"};
    bytes[COUNT] = static_cast<std::uint8_t>(++count);
    publish(tasklet, semaphore.clock);
    if (semaphore.waiting.empty()) return NOBODY;
    std::uint32_t next = semaphore.waiting.front();
    semaphore.waiting.pop_front();
    go_on(next, semaphore.clock);
    return static_cast<int>(next);
}

int Synchronization::handshake_wait_for(std::uint32_t tasklet, std::uint32_t notifier) {
    if (notifier >= nr_tasklets_)
        throw Broken{Rule::tasklet_number, tasklet, notifier, 0,
                     format("handshake_wait_for(%u): the program has %u tasklets", notifier, nr_tasklets_)};
    if (notifier == tasklet)
        throw Broken{Rule::handshake, tasklet, notifier, 0, "handshake_wait_for: the tasklet waits for itself"};
    int &waiting = handshakes_[notifier];
    Clock both;
    if (waiting == static_cast<int>(notifier)) {
        waiting = NOBODY;
        publish(notifier, both);
        go_on(tasklet, both);
        go_on(notifier, both);
        return static_cast<int>(notifier);
    }
    if (waiting != NOBODY)
        throw Broken{Rule::handshake, tasklet, notifier, 0,
                     format("handshake_wait_for(%u): tasklet %d waits for it already", notifier, waiting)};
    waiting = static_cast<int>(tasklet);
    waits_[tasklet] = format("for a handshake of tasklet %u", notifier);
    return NOBODY;
}

int Synchronization::handshake_notify(std::uint32_t tasklet) {
    int &waiting = handshakes_[tasklet];
    if (waiting == NOBODY) {
        waiting = static_cast<int>(tasklet);
        waits_[tasklet] = "for a tasklet that takes its handshake";
        return NOBODY;
    }
    int other = waiting;
    waiting = NOBODY;
    Clock both;
    publish(tasklet, both);
    go_on(static_cast<std::uint32_t>(other), both);
    return other;
}

bool Synchronization::acquire(std::uint32_t tasklet, std::uint32_t bit) {
    if (bit >= bits_.size())
        throw Broken{Rule::atomic_bit, tasklet, bit, 0, format("acquire of bit %u: there are %zu", bit, bits_.size())};
    if (bits_[bit].taken) return false;
    bits_[bit].taken = true;
    go_on(tasklet, bits_[bit].clock);
    return true;
}

void Synchronization::release(std::uint32_t tasklet, std::uint32_t bit) {
    if (bit >= bits_.size())
        throw Broken{Rule::atomic_bit, tasklet, bit, 0, format("release of bit %u: there are %zu", bit, bits_.size())};
    publish(tasklet, bits_[bit].clock);
    bits_[bit].taken = false;
}

bool Synchronization::stop(std::uint32_t tasklet) {
    Mask self = Mask{1} << tasklet;
    if (resumed_ & self) {
        resumed_ &= ~self;
        return false;
    }
    stopped_ |= self;
    waits_[tasklet] = "for a tasklet that resumes it";
    return true;
}

bool Synchronization::resume(std::uint32_t tasklet, std::uint32_t other) {
    if (other >= nr_tasklets_)
        throw Broken{Rule::tasklet_number, tasklet, other, 0,
                     format("resume of tasklet %u: the program has %u", other, nr_tasklets_)};
    Clock learned;
    publish(tasklet, learned);
    Mask bit = Mask{1} << other;
    clocks_[other].join(learned);
    if (!(stopped_ & bit)) {
        resumed_ |= bit;
        return false;
    }
    stopped_ &= ~bit;
    waits_[other].clear();
    return true;
}
