// The ranks, and which allocation has them.
#include "machine.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <new>
#include <set>
#include <stdexcept>

#include "report.h"

namespace {

// Never destroyed: a callback may run while the host program exits.
std::mutex &lock = *new std::mutex;
auto &allocations = *new std::map<dpu_rank_t **, std::unique_ptr<Allocation>>;
auto &ranks_in_use = *new std::set<std::uint32_t>;
std::mutex &turns_lock = *new std::mutex;
auto &turns_changed = *new std::condition_variable;
std::uint64_t turns_count = 0;

constexpr std::uint32_t DEFAULT_NR_DPUS = 256, MOST_DPUS = 2560;

std::uint32_t nr_ranks() { return (machine::nr_dpus() + shared::DPUS_PER_RANK - 1) / shared::DPUS_PER_RANK; }

} // namespace

namespace turns {

std::uint64_t count() {
    std::lock_guard guard(turns_lock);
    return turns_count;
}

void signal() {
    {
        std::lock_guard guard(turns_lock);
        turns_count++;
    }
    turns_changed.notify_all();
}

void wait(std::uint64_t seen, unsigned milliseconds) {
    std::unique_lock guard(turns_lock);
    auto changed = [seen] { return turns_count != seen; };
    if (milliseconds == 0)
        turns_changed.wait(guard, changed);
    else
        turns_changed.wait_for(guard, std::chrono::milliseconds(milliseconds), changed);
}

} // namespace turns

namespace machine {

std::uint32_t nr_dpus() {
    const char *text = std::getenv("DPU_EMULATOR_NR_DPUS");
    if (!text) return DEFAULT_NR_DPUS;
    unsigned long number = std::strtoul(text, nullptr, 10);
    if (number >= 1 && number <= MOST_DPUS) return static_cast<std::uint32_t>(number);
    refuse(DPU_ERR_SYSTEM, "DPU_EMULATOR_NR_DPUS=%s is not 1 to %u: there are %u DPUs", text, MOST_DPUS,
           DEFAULT_NR_DPUS);
    return DEFAULT_NR_DPUS;
}

std::uint32_t free_dpus() {
    std::lock_guard guard(lock);
    std::uint32_t all = nr_dpus(), used = static_cast<std::uint32_t>(ranks_in_use.size()) * shared::DPUS_PER_RANK;
    return all > used ? all - used : 0;
}

dpu_error_t allocate(std::uint32_t wanted, const Profile &profile, dpu_set_t &set) {
    std::lock_guard guard(lock);
    std::uint32_t needed = (wanted + shared::DPUS_PER_RANK - 1) / shared::DPUS_PER_RANK;
    std::uint32_t left =
        nr_ranks() > ranks_in_use.size() ? nr_ranks() - static_cast<std::uint32_t>(ranks_in_use.size()) : 0;
    if (wanted == 0 || wanted > nr_dpus() || needed > left)
        return refuse(DPU_ERR_ALLOCATION,
                      "%u DPUs are asked for, %u ranks: the emulated machine has %u DPUs, of its %u ranks %u are free "
                      "(DPU_EMULATOR_NR_DPUS says how many DPUs, up to %u)",
                      wanted, needed, nr_dpus(), nr_ranks(), left, MOST_DPUS);
    auto allocation = std::make_unique<Allocation>();
    allocation->profile = profile;
    std::vector<std::uint32_t> numbers;
    try {
        for (std::uint32_t number = 0; numbers.size() < needed; number++) {
            if (ranks_in_use.count(number)) continue;
            std::uint32_t dpus = std::min(shared::DPUS_PER_RANK,
                                          wanted - static_cast<std::uint32_t>(numbers.size()) * shared::DPUS_PER_RANK);
            allocation->owned.push_back(std::make_unique<dpu_rank_t>(number, dpus));
            allocation->ranks.push_back(allocation->owned.back().get());
            numbers.push_back(number);
        }
    } catch (const std::bad_alloc &) {
        return DPU_ERR_SYSTEM;
    } catch (const std::runtime_error &) {
        return DPU_ERR_DRIVER;
    }
    ranks_in_use.insert(numbers.begin(), numbers.end());
    set.kind = DPU_SET_RANKS;
    set.list.nr_ranks = needed;
    set.list.ranks = allocation->ranks.data();
    allocations[set.list.ranks] = std::move(allocation);
    return DPU_OK;
}

dpu_error_t release(const dpu_set_t &set) {
    std::unique_lock guard(lock);
    auto find = [&set] {
        auto found = set.kind == DPU_SET_RANKS ? allocations.find(set.list.ranks) : allocations.end();
        return found != allocations.end() && found->second->ranks.size() == set.list.nr_ranks ? found
                                                                                              : allocations.end();
    };
    auto found = find();
    while (found != allocations.end()) {
        std::uint64_t seen = turns::count();
        if (found->second->callbacks == 0) break;
        if (in_callback_of(*found->second))
            return refuse(DPU_ERR_INTERNAL, "dpu_free: a callback cannot free the DPUs that it is called for");
        guard.unlock();
        turns::wait(seen);
        guard.lock();
        found = find();
    }
    if (found == allocations.end())
        return refuse(DPU_ERR_INVALID_DPU_SET,
                      "dpu_free: this set was not allocated by dpu_alloc, or is freed already");
    for (dpu_rank_t *rank : found->second->ranks) ranks_in_use.erase(rank->number);
    allocations.erase(found);
    return DPU_OK;
}

Allocation *find(const dpu_set_t &set) {
    std::lock_guard guard(lock);
    for (auto &[ranks, allocation] : allocations) {
        std::size_t count = allocation->ranks.size();
        if (set.kind == DPU_SET_RANKS) {
            std::less_equal<dpu_rank_t **> at_most;
            if (at_most(ranks, set.list.ranks) && at_most(set.list.ranks + set.list.nr_ranks, ranks + count))
                return allocation.get();
        } else if (set.kind == DPU_SET_DPU) {
            std::less_equal<const dpu_t *> at_most;
            for (const dpu_rank_t *rank : allocation->ranks)
                if (at_most(rank->dpus.data(), set.dpu) && at_most(set.dpu, &rank->dpus.back()))
                    return allocation.get();
        }
    }
    return nullptr;
}

} // namespace machine

Selection::Selection(const dpu_set_t &set) : allocation_(machine::find(set)), one_dpu_(set.kind == DPU_SET_DPU) {
    if (!allocation_) {
        refuse(DPU_ERR_INVALID_DPU_SET, "this is no set of DPUs, or it has been freed");
        return;
    }
    if (one_dpu_)
        ranks_.push_back(set.dpu->rank);
    else
        ranks_.assign(set.list.ranks, set.list.ranks + set.list.nr_ranks);
    for (dpu_rank_t *rank : ranks_) {
        locks_.emplace_back(rank->lock); // always in the order of the allocation, so never crosswise
        for (dpu_t &dpu : rank->dpus)
            if (!one_dpu_ || &dpu == set.dpu) dpus_.push_back(&dpu);
    }
}

std::uint64_t Selection::mask(const dpu_rank_t &rank) const {
    std::uint64_t bits = 0;
    for (const dpu_t *dpu : dpus_)
        if (dpu->rank == &rank) bits |= std::uint64_t{1} << dpu->number;
    return bits;
}

dpu_error_t Selection::settle() {
    bool done;
    return advance(true, done);
}

dpu_error_t Selection::progress(bool &done) { return advance(false, done); }

// All ranks together: while one waits for its launch, the others' run.
dpu_error_t Selection::advance(bool wait, bool &done) {
    dpu_error_t first = DPU_OK;
    bool again = true;
    done = true;
    while (again) {
        again = false;
        done = true;
        bool turn = false;
        std::uint64_t seen = turns::count();
        for (dpu_rank_t *rank : ranks_) {
            if (rank->held_elsewhere()) {
                turn = true;
                continue;
            }
            dpu_error_t error = DPU_OK;
            bool idle = rank->finish(wait, error);
            if (error != DPU_OK) rank->fail(error);
            while (idle && !rank->held_here() && !rank->jobs.empty() && !rank->jobs.front().callback) {
                auto job = std::move(rank->jobs.front());
                rank->jobs.pop_front();
                if ((error = job.run()) != DPU_OK) rank->fail(error);
                idle = !rank->running();
                if (!idle && wait) again = true;
            }
            if (first == DPU_OK) first = rank->error;
            rank->error = DPU_OK;
            if (!rank->held_here() && !rank->jobs.empty() && rank->jobs.front().callback) turn = true;
            if (!idle) done = false;
        }
        if (!turn) continue;
        done = false;
        if (!wait) continue;
        await_turn(seen);
        again = true;
    }
    return first;
}

void Selection::await_turn(std::uint64_t seen) {
    for (auto &guard : locks_) guard.unlock();
    turns::wait(seen);
    for (auto &guard : locks_) guard.lock();
}

void Selection::advance_quietly() {
    bool done;
    dpu_error_t error = progress(done);
    if (error != DPU_OK) ranks_.front()->error = error;
}

dpu_error_t Selection::enqueue(const std::function<std::function<dpu_error_t()>(dpu_rank_t &)> &job) {
    for (dpu_rank_t *rank : ranks_) rank->jobs.push_back({job(*rank), nullptr});
    bool done;
    return progress(done);
}

bool Selection::any_in_fault() const {
    return std::any_of(dpus_.begin(), dpus_.end(), [](const dpu_t *dpu) { return dpu->in_fault(); });
}

dpu_program_t *Selection::program(dpu_error_t &error) const {
    error = DPU_OK;
    dpu_program_t *program = dpus_.front()->program.get();
    for (const dpu_t *dpu : dpus_) {
        if (!dpu->program) {
            error =
                refuse(DPU_ERR_NO_PROGRAM_LOADED, "dpu %u of rank %u has no program", dpu->number, dpu->rank->number);
            return nullptr;
        }
        if (dpu->program.get() != program) error = DPU_ERR_DIFFERENT_DPU_PROGRAMS;
    }
    if (error == DPU_OK) return program;
    refuse(error, "the DPUs of the set have different programs: a symbol's name means nothing");
    return nullptr;
}
