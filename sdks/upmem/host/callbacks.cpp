// The API's callbacks: each has a thread, which waits for its turn in the queues of its ranks.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <system_error>
#include <thread>

#include <dpu.h>

#include "machine.h"
#include "report.h"

namespace {

// How long a callback waits for a launch before it looks again.
constexpr unsigned POLL_MILLISECONDS = 1;

using Function = dpu_error_t (*)(dpu_set_t, std::uint32_t, void *);

// One call of a function.
struct Callback {
    dpu_set_t queues; // in whose queues it has its turn
    dpu_set_t set;
    std::uint32_t rank_id;
    Function function;
    void *args;
    bool blocking, waited_for;
    std::size_t left; // how many queues have not come to its turn
    dpu_error_t error = DPU_OK;
    std::atomic<bool> ended{false};
};

// The allocation whose callback this thread is.
thread_local const Allocation *called_for = nullptr;

enum class Turn { not_yet, now, never };

bool is_next(const dpu_rank_t &rank, const Callback &callback) {
    return rank.holder == std::thread::id() && !rank.running() && !rank.jobs.empty() &&
           rank.jobs.front().callback == &callback;
}

void withdraw(dpu_rank_t &rank, const Callback &callback) {
    auto mine = [&](const Job &job) { return job.callback == &callback; };
    rank.jobs.erase(std::remove_if(rank.jobs.begin(), rank.jobs.end(), mine), rank.jobs.end());
}

// Takes the turn if it has come: of all ranks together if the callback blocks them, and otherwise one by one.
Turn take(Selection &selection, Callback &callback) {
    selection.advance_quietly();
    const auto &ranks = selection.ranks();
    std::size_t waiting = 0;
    for (const dpu_rank_t *rank : ranks)
        for (const Job &job : rank->jobs)
            if (job.callback == &callback) waiting++;
    if (waiting < callback.left) { // an error has emptied a queue
        for (dpu_rank_t *rank : ranks) withdraw(*rank, callback);
        turns::signal();
        return Turn::never;
    }
    auto next = [&](const dpu_rank_t *rank) { return is_next(*rank, callback); };
    if (callback.blocking && !std::all_of(ranks.begin(), ranks.end(), next)) return Turn::not_yet;
    for (dpu_rank_t *rank : ranks) {
        if (!is_next(*rank, callback)) continue;
        rank->jobs.pop_front();
        if (callback.blocking) rank->holder = std::this_thread::get_id();
        callback.left--;
        turns::signal();
    }
    return callback.left == 0 ? Turn::now : Turn::not_yet;
}

Turn wait_for_turn(Callback &callback) {
    while (true) {
        std::uint64_t seen = turns::count();
        bool running = false;
        {
            Selection selection(callback.queues);
            if (Turn turn = take(selection, callback); turn != Turn::not_yet) return turn;
            for (const dpu_rank_t *rank : selection.ranks()) running |= rank->running();
        }
        turns::wait(seen, running ? POLL_MILLISECONDS : 0);
    }
}

void call(const std::shared_ptr<Callback> &callback, Allocation &allocation) {
    called_for = &allocation;
    if (wait_for_turn(*callback) == Turn::now) {
        callback->error = callback->function(callback->set, callback->rank_id, callback->args);
        Selection selection(callback->queues);
        for (dpu_rank_t *rank : selection.ranks()) {
            if (callback->blocking) rank->holder = {};
            if (callback->error != DPU_OK && !callback->waited_for) rank->fail(callback->error);
        }
    }
    callback->ended = true;
    allocation.callbacks--;
    turns::signal();
}

dpu_error_t request(Selection &selection, const std::shared_ptr<Callback> &callback) {
    Allocation &allocation = selection.allocation();
    try {
        // It waits for the locks of the selection.
        allocation.callbacks++;
        std::thread([callback, &allocation] { call(callback, allocation); }).detach();
    } catch (const std::system_error &error) {
        allocation.callbacks--;
        return refuse(DPU_ERR_SYSTEM, "dpu_callback: no thread for a callback: %s", error.what());
    }
    for (dpu_rank_t *rank : selection.ranks())
        if (callback->queues.kind == DPU_SET_DPU || callback->left > 1 || rank == callback->queues.list.ranks[0])
            rank->jobs.push_back({{}, callback.get()});
    return DPU_OK;
}

} // namespace

bool in_callback_of(const Allocation &allocation) { return called_for == &allocation; }

extern "C" dpu_error_t dpu_callback(struct dpu_set_t dpu_set, Function function, void *args,
                                    dpu_callback_flags_t flags) {
    bool waits = !(flags & DPU_CALLBACK_ASYNC), single = flags & DPU_CALLBACK_SINGLE_CALL;
    bool blocking = !(flags & DPU_CALLBACK_NONBLOCKING);
    if (waits && !blocking)
        return refuse(DPU_ERR_NONBLOCKING_SYNC_CALLBACK,
                      "dpu_callback: DPU_CALLBACK_NONBLOCKING is for callbacks with DPU_CALLBACK_ASYNC");
    if (!function) return refuse(DPU_ERR_INTERNAL, "dpu_callback: no function (NULL)");
    std::vector<std::shared_ptr<Callback>> callbacks;
    {
        Selection selection(dpu_set);
        if (!selection) return DPU_ERR_INVALID_DPU_SET;
        if (waits) {
            for (const dpu_rank_t *rank : selection.ranks())
                if (rank->held_here())
                    return refuse(DPU_ERR_INTERNAL,
                                  "dpu_callback: a callback waits for a callback on its own rank %u, which would begin "
                                  "after its end",
                                  rank->number);
            if (dpu_error_t error = selection.settle(); error != DPU_OK) return error;
        }
        std::uint32_t ranks = static_cast<std::uint32_t>(selection.ranks().size());
        bool whole = selection.one_dpu() || (single && (waits || ranks > 1));
        for (std::uint32_t index = 0; index < (whole ? 1 : ranks); index++) {
            dpu_set_t set = dpu_set;
            if (!whole) {
                set.list.nr_ranks = 1;
                set.list.ranks = dpu_set.list.ranks + index;
            }
            callbacks.push_back(std::make_shared<Callback>());
            Callback &one = *callbacks.back();
            one.queues = one.set = set;
            one.rank_id = whole ? UINT32_MAX : index;
            one.function = function;
            one.args = args;
            one.blocking = blocking;
            one.waited_for = waits;
            one.left = whole ? ranks : 1;
            if (dpu_error_t error = request(selection, callbacks.back()); error != DPU_OK) return error;
        }
    }
    if (!waits) return DPU_OK;
    dpu_error_t first = DPU_OK;
    for (const auto &callback : callbacks) {
        for (std::uint64_t seen = turns::count(); !callback->ended; seen = turns::count()) {
            if (callback->ended) break;
            turns::wait(seen);
        }
        if (first == DPU_OK) first = callback->error;
    }
    return first;
}
