// The order of events in a launch, and what each service does.
#include "scheduler.h"

#include <cstring>

namespace {

using shared::Rule;

// Instructions that a tasklet may run ahead. Short enough that a tasklet waiting in a loop for another one's store to
// WRAM sees it soon; long enough that the switch, some 100 ns, hardly counts.
constexpr std::int64_t BUDGET = 2000;

std::int64_t &budget() { return *Memory::at<std::int64_t>(FOUNDRY_DPU_BUDGET); }
std::uint32_t &site() { return *Memory::at<std::uint32_t>(FOUNDRY_DPU_SITE); }
std::uint32_t &line() { return *Memory::at<std::uint32_t>(FOUNDRY_DPU_LINE); }
std::uint32_t &call_site() { return *Memory::at<std::uint32_t>(FOUNDRY_DPU_CALL_SITE); }
std::uint32_t &caller() { return *Memory::at<std::uint32_t>(FOUNDRY_DPU_CALLER); }
std::int32_t &stack_left() { return *Memory::at<std::int32_t>(FOUNDRY_DPU_STACK_LEFT); }
std::uint32_t &running() { return *Memory::at<std::uint32_t>(FOUNDRY_DPU_TASKLET); }

std::int64_t cost(std::uint32_t op) {
    switch (op) {
    case FOUNDRY_DPU_OP_MRAM_READ:
    case FOUNDRY_DPU_OP_MRAM_WRITE: return model::SERVICE_DMA;
    case FOUNDRY_DPU_OP_MRAM_LOAD: return model::SERVICE_MRAM_SCALAR;
    case FOUNDRY_DPU_OP_MRAM_STORE: return 2 * model::SERVICE_MRAM_SCALAR;
    case FOUNDRY_DPU_OP_BARRIER_WAIT: return model::SERVICE_BARRIER;
    case FOUNDRY_DPU_OP_MUTEX_LOCK:
    case FOUNDRY_DPU_OP_MUTEX_TRYLOCK:
    case FOUNDRY_DPU_OP_MUTEX_UNLOCK: return model::SERVICE_MUTEX;
    case FOUNDRY_DPU_OP_SEM_TAKE:
    case FOUNDRY_DPU_OP_SEM_GIVE: return model::SERVICE_SEMAPHORE;
    case FOUNDRY_DPU_OP_HANDSHAKE_WAIT_FOR:
    case FOUNDRY_DPU_OP_HANDSHAKE_NOTIFY: return model::SERVICE_HANDSHAKE;
    case FOUNDRY_DPU_OP_ACQUIRE:
    case FOUNDRY_DPU_OP_RELEASE:
    case FOUNDRY_DPU_OP_STOP:
    case FOUNDRY_DPU_OP_RESUME: return model::SERVICE_ATOMIC;
    case FOUNDRY_DPU_OP_PERF_CONFIG:
    case FOUNDRY_DPU_OP_PERF_GET: return model::SERVICE_PERFCOUNTER;
    default: return 0;
    }
}

} // namespace

Scheduler::Scheduler(Memory &memory, shared::Control &control, Log &log)
    : memory_(memory), control_(control), log_(log), program_(control.program), nr_tasklets_(program_.nr_tasklets),
      synchronization_(memory, nr_tasklets_), races_(memory, synchronization_, log) {
    races_.serve();
}

void Scheduler::launch() {
    pipeline_ = Pipeline{};
    engine_free_ = 0;
    turns_ = 0;
    performance_kind_ = FOUNDRY_DPU_PERF_NOTHING;
    both_ = {};
    control_.statistics = {};
    memory_.clear_counters();
    synchronization_.begin();
    races_.begin();
    in_pipeline_ = nr_tasklets_;
    for (std::uint32_t i = 0; i < nr_tasklets_; i++) start(i);

    struct Closing {
        Scheduler &self;
        ~Closing() { self.control_.statistics.cycles = self.pipeline_.cycles(); }
    } closing{*this};

    for (;;) {
        Tasklet *next = nullptr;
        for (std::uint32_t i = 0; i < nr_tasklets_; i++) {
            Tasklet &one = tasklets_[i];
            if (one.state != State::issuing) continue;
            if (!next || one.target < next->target || (one.target == next->target && one.turn < next->turn))
                next = &one;
        }
        if (!next && transfers_.empty()) {
            for (std::uint32_t i = 0; i < nr_tasklets_; i++)
                if (tasklets_[i].state != State::idle) deadlock();
            memory_.check_margins();
            report_slack();
            return;
        }
        if (!transfers_.empty() && (!next || transfers_.front().end <= pipeline_.time_of(next->target, in_pipeline_))) {
            finish_transfer();
        } else {
            pipeline_.advance_to_progress(next->target, in_pipeline_);
            serve(static_cast<std::uint32_t>(next - tasklets_.data()));
        }
        if (pipeline_.cycles() > program_.max_cycles)
            throw Broken{Rule::runaway, shared::NO_TASKLET, 0, 0,
                         format("the launch has taken %llu modelled cycles; DPU_EMULATOR_MAX_CYCLES allows %llu",
                                static_cast<unsigned long long>(pipeline_.cycles()),
                                static_cast<unsigned long long>(program_.max_cycles))};
    }
}

std::uint32_t Scheduler::code_address(std::uint32_t tasklet) const {
    std::uint64_t stack = tasklets_[tasklet].context.rsp;
    if (stack > UINT32_MAX || !memory_.usable(static_cast<std::uint32_t>(stack), 8)) return 0;
    std::uint32_t address = *Memory::at<std::uint32_t>(static_cast<std::uint32_t>(stack));
    return address - FOUNDRY_DPU_CODE_BASE < program_.code_bytes ? address : 0; // a tail call returns into the emulator
}

std::vector<std::uint32_t> Scheduler::calls(std::uint32_t tasklet) const {
    constexpr std::uint8_t CALL = 0xe8; // with 4 bytes of distance behind
    std::vector<std::uint32_t> found;
    std::uint64_t bottom = std::max<std::uint64_t>(tasklets_[tasklet].context.rsp, memory_.slack_bottom(tasklet));
    for (std::uint64_t at = bottom & ~7ull; at + 8 <= memory_.stack_top(tasklet) && found.size() < 8; at += 8) {
        std::uint64_t next = *Memory::at<std::uint64_t>(static_cast<std::uint32_t>(at));
        std::uint64_t call = next - 5;
        if (call - FOUNDRY_DPU_CODE_BASE < program_.code_bytes && next - FOUNDRY_DPU_CODE_BASE < program_.code_bytes &&
            *Memory::at<std::uint8_t>(static_cast<std::uint32_t>(call)) == CALL)
            found.push_back(static_cast<std::uint32_t>(call));
    }
    return found;
}

// A tasklet's first event, at time 0: its stack is as if the entry point were to be returned to.
void Scheduler::start(std::uint32_t tasklet) {
    Tasklet &one = tasklets_[tasklet];
    one = Tasklet{};
    std::uint32_t top = memory_.stack_top(tasklet) & ~15u;
    *Memory::at<std::uint64_t>(top - 8) = FOUNDRY_DPU_EXIT;
    *Memory::at<std::uint64_t>(top - 16) = program_.entry;
    one.context.rsp = top - 16;
    one.context.op = FOUNDRY_DPU_OP_YIELD;
    one.state = State::issuing;
    one.target = 0;
    one.turn = turns_++;
    one.stack_left = static_cast<std::int32_t>(memory_.stack_bytes(tasklet));
}

// Lets a tasklet that is in the pipeline run ahead to its next event.
void Scheduler::run(std::uint32_t tasklet) {
    Tasklet &one = tasklets_[tasklet];
    budget() = BUDGET;
    running() = tasklet;
    site() = line() = 0;
    caller() = one.caller;
    call_site() = one.call_site;
    stack_left() = one.stack_left;
    races_.enter(tasklet);
    switches = switches + 1;
    foundry_resume(&one.context);
    one.site = site();
    one.line = line();
    one.caller = caller();
    one.call_site = call_site();
    one.stack_left = stack_left();
    std::int64_t service = cost(one.context.op & 0xff), spent = BUDGET - budget() + service;
    memory_.count(one.line, static_cast<std::uint64_t>(service), 0);
    // The program must not write here: it would silently change the number of cycles.
    if (bool number = running() != tasklet; number || spent < 0 || spent > INT64_C(1) << 40) {
        std::uint32_t address = number ? FOUNDRY_DPU_TASKLET : FOUNDRY_DPU_BUDGET;
        throw Broken{Rule::wild_access, tasklet, address, 0,
                     format("something was written at 0x%08x, where there is no memory", address)};
    }
    control_.statistics.instructions += static_cast<std::uint64_t>(spent);
    one.target = pipeline_.after(static_cast<std::uint64_t>(spent));
    one.turn = turns_++;
    if (one.context.op == OP_RACE) throw races_.broken();
    if (one.context.op == OP_SIGNAL) throw broken_by_signal(memory_, nr_tasklets_, tasklet);
}

// Gives a tasklet the result of its service and lets it run.
void Scheduler::go_on(std::uint32_t tasklet, std::uint64_t result) {
    Tasklet &one = tasklets_[tasklet];
    if (one.state != State::issuing && one.state != State::spinning) in_pipeline_++;
    one.state = State::issuing;
    one.context.result = result;
    run(tasklet);
}

void Scheduler::serve(std::uint32_t tasklet) {
    Tasklet &one = tasklets_[tasklet];
    const Context &call = one.context;
    auto stop = [&](State state) {
        one.state = state;
        in_pipeline_--;
    };
    auto wake = [&](int other) {
        if (other != Synchronization::NOBODY) go_on(static_cast<std::uint32_t>(other));
    };
    switch (call.op & 0xff) {
    case FOUNDRY_DPU_OP_YIELD: run(tasklet); break;
    case FOUNDRY_DPU_OP_EXIT: stop(State::idle); break;
    case FOUNDRY_DPU_OP_FAULT: reason(tasklet, call.a, call.b, call.c); break;
    case FOUNDRY_DPU_OP_MRAM_READ:
    case FOUNDRY_DPU_OP_MRAM_WRITE: {
        bool is_read = call.op == FOUNDRY_DPU_OP_MRAM_READ;
        std::uint32_t mram = memory_.dma_address(memory_.mram_address(call.a)), wram = memory_.dma_address(call.b);
        std::uint32_t bytes = memory_.dma_bytes(call.c);
        memory_.check_transfer(is_read, tasklet, mram, wram, bytes);
        if (is_read)
            races_.mram_to_wram(tasklet, mram, wram, bytes, place(tasklet));
        else
            races_.wram_to_mram(tasklet, mram, wram, bytes, place(tasklet));
        stop(State::dma);
        transfer(tasklet, is_read, mram, wram, bytes, false);
        break;
    }
    case FOUNDRY_DPU_OP_MRAM_LOAD: mram_load(tasklet, memory_.mram_address(call.a), call.b, call.op >> 8); break;
    case FOUNDRY_DPU_OP_MRAM_STORE:
        mram_store(tasklet, memory_.mram_address(call.a), call.op >> 8, call.b | std::uint64_t{call.c} << 32);
        break;
    case FOUNDRY_DPU_OP_BARRIER_WAIT: {
        Synchronization::Mask all = synchronization_.barrier_wait(tasklet, call.a);
        if (all == 0) {
            stop(State::stopped);
            break;
        }
        if (static_cast<unsigned>(__builtin_popcount(all)) == nr_tasklets_) races_.forget();
        for (std::uint32_t i = 0; i < nr_tasklets_; i++)
            if (all >> i & 1) go_on(i);
        break;
    }
    case FOUNDRY_DPU_OP_MUTEX_LOCK:
        if (synchronization_.mutex_lock(tasklet, call.a))
            go_on(tasklet);
        else
            one.state = State::spinning;
        break;
    case FOUNDRY_DPU_OP_MUTEX_TRYLOCK: go_on(tasklet, synchronization_.mutex_try(tasklet, call.a) ? 0 : 1); break;
    case FOUNDRY_DPU_OP_MUTEX_UNLOCK: {
        int next = synchronization_.mutex_unlock(tasklet, call.a);
        go_on(tasklet);
        wake(next);
        break;
    }
    case FOUNDRY_DPU_OP_SEM_TAKE:
        if (synchronization_.semaphore_take(tasklet, call.a))
            go_on(tasklet);
        else
            stop(State::stopped);
        break;
    case FOUNDRY_DPU_OP_SEM_GIVE: {
        int next = synchronization_.semaphore_give(tasklet, call.a);
        go_on(tasklet);
        wake(next);
        break;
    }
    case FOUNDRY_DPU_OP_HANDSHAKE_WAIT_FOR:
    case FOUNDRY_DPU_OP_HANDSHAKE_NOTIFY: {
        bool notifies = call.op == FOUNDRY_DPU_OP_HANDSHAKE_NOTIFY;
        int partner = notifies ? synchronization_.handshake_notify(tasklet)
                               : synchronization_.handshake_wait_for(tasklet, call.a);
        if (partner == Synchronization::NOBODY) {
            stop(State::stopped);
            break;
        }
        go_on(tasklet);
        wake(partner);
        break;
    }
    case FOUNDRY_DPU_OP_ACQUIRE: go_on(tasklet, synchronization_.acquire(tasklet, call.a) ? 0 : 1); break;
    case FOUNDRY_DPU_OP_RELEASE:
        synchronization_.release(tasklet, call.a);
        go_on(tasklet);
        break;
    case FOUNDRY_DPU_OP_STOP:
        if (synchronization_.stop(tasklet))
            stop(State::stopped);
        else
            go_on(tasklet);
        break;
    case FOUNDRY_DPU_OP_RESUME: {
        std::uint32_t other = call.a;
        bool wakes = synchronization_.resume(tasklet, other);
        go_on(tasklet);
        if (wakes) go_on(other);
        break;
    }
    case FOUNDRY_DPU_OP_PERF_CONFIG: {
        if (call.a > FOUNDRY_DPU_PERF_BOTH)
            throw Broken{Rule::service, tasklet, call.a, 0,
                         "perfcounter_config: only v1B counts both cycles and instructions (-mcpu=v1B)"};
        std::uint64_t before = performance();
        both_ = both();
        if (call.a != FOUNDRY_DPU_PERF_SAME) performance_kind_ = call.a;
        if (call.b != 0) {
            performance_start_ = 0;
            performance_start_ = performance();
            both_ = {};
        }
        both_start_ = {pipeline_.cycles() - both_.cycles, control_.statistics.instructions - both_.instructions};
        go_on(tasklet, before);
        break;
    }
    case FOUNDRY_DPU_OP_PERF_GET:
        go_on(tasklet, call.a == FOUNDRY_DPU_PERF_CYCLES         ? both().cycles
                       : call.a == FOUNDRY_DPU_PERF_INSTRUCTIONS ? both().instructions
                                                                 : performance());
        break;
    case FOUNDRY_DPU_OP_PRINTF:
    case FOUNDRY_DPU_OP_LOG: {
        std::string text;
        if (call.op == FOUNDRY_DPU_OP_PRINTF) {
            text = print(memory_, tasklet, call.a, call.b);
        } else {
            if (!memory_.usable(call.a, call.b))
                throw Broken{Rule::print, tasklet, call.a, call.b, "the text to print is not in WRAM"};
            text.assign(Memory::at<char>(call.a), call.b);
        }
        log_.add(text.data(), text.size());
        go_on(tasklet, text.size());
        // Formatting takes time after the call, so the next event comes that much later.
        std::uint64_t instructions = text.size() * model::SERVICE_PRINT;
        control_.statistics.instructions += instructions;
        one.target += instructions << Pipeline::FRACTION;
        break;
    }
    default:
        throw Broken{Rule::service, tasklet, call.op, 0,
                     format("the program asks for service %u, which there is not", call.op)};
    }
}

std::uint64_t Scheduler::performance() const {
    switch (performance_kind_) {
    case FOUNDRY_DPU_PERF_CYCLES: return pipeline_.cycles() - performance_start_;
    case FOUNDRY_DPU_PERF_INSTRUCTIONS: return control_.statistics.instructions - performance_start_;
    default: return 0;
    }
}

Scheduler::Counts Scheduler::both() const {
    if (performance_kind_ != FOUNDRY_DPU_PERF_BOTH) return both_;
    return {pipeline_.cycles() - both_start_.cycles, control_.statistics.instructions - both_start_.instructions};
}

void Scheduler::transfer(std::uint32_t tasklet, bool is_read, std::uint32_t mram, std::uint32_t wram,
                         std::uint32_t bytes, bool scalar) {
    std::int64_t alpha = is_read ? model::DMA_READ_ALPHA : model::DMA_WRITE_ALPHA;
    auto latency = static_cast<std::uint64_t>(alpha + (model::DMA_BETA_HALVES * bytes + 1) / 2);
    auto busy = static_cast<std::uint64_t>((model::DMA_ENGINE_START + model::DMA_ENGINE_BYTE * bytes + 500) / 1000);
    std::uint64_t cycles = std::min(latency, busy); // of the engine, which then takes the next transfer
    shared::Statistics &statistics = control_.statistics;
    statistics.dma_transfers++;
    statistics.dma_cycles += cycles;
    memory_.count(tasklets_[tasklet].line, 0, cycles);
    (is_read ? statistics.dma_read_bytes : statistics.dma_write_bytes) += bytes;
    Pipeline::Time begin = std::max(engine_free_, pipeline_.now());
    engine_free_ = begin + (cycles << Pipeline::FRACTION);
    // They end in the order in which they begin: of any two, the latencies differ by less than the engine is busy.
    transfers_.push_back({tasklet, is_read, scalar, mram, wram, bytes, begin + (latency << Pipeline::FRACTION)});
}

void Scheduler::finish_transfer() {
    Transfer done = transfers_.front();
    transfers_.pop_front();
    pipeline_.advance_to_time(done.end, in_pipeline_);
    SmallWrite &writing = writing_[done.tasklet];
    if (!done.is_read) {
        // A word that another tasklet has read to change a part of it would lose what is written now.
        for (std::uint32_t i = 0; nr_writing_ > 0 && i < nr_tasklets_; i++) {
            if (i == done.tasklet || !writing_[i].active) continue;
            std::uint32_t word = writing_[i].mram & ~7u;
            if (word >= (done.mram & ~7u) && word < done.mram + done.bytes)
                races_.found({Rule::mram_race, i, writing_[i].mram, writing_[i].bytes,
                              format("tasklet %u writes %u bytes at 0x%08x while tasklet %u changes %u bytes of the "
                                     "8-byte word at 0x%08x: one of the two is lost",
                                     done.tasklet, done.bytes, done.mram, i, writing_[i].bytes, word)},
                             place(i), place(done.tasklet));
        }
    }
    if (!done.scalar) {
        if (done.is_read)
            memory_.read(done.mram, done.wram, done.bytes);
        else
            memory_.write(done.mram, done.wram, done.bytes);
        go_on(done.tasklet);
        return;
    }
    std::uint32_t word = done.mram & ~7u;
    if (done.is_read && writing.active) {
        writing.word = memory_.word(word);
        transfer(done.tasklet, false, word, 0, 8, true);
        return;
    }
    if (done.is_read) {
        const Context &call = tasklets_[done.tasklet].context;
        std::uint64_t value = memory_.word(word) >> 8 * (call.a & 7);
        go_on(done.tasklet, call.b == 8 ? value : value & ((1ull << 8 * call.b) - 1));
        return;
    }
    std::uint64_t mask = writing.bytes == 8 ? ~0ull : (1ull << 8 * writing.bytes) - 1;
    int shift = static_cast<int>(8 * (writing.mram - word));
    memory_.set_word(word, (writing.word & ~(mask << shift)) | (writing.value & mask) << shift);
    writing.active = false;
    nr_writing_--;
    go_on(done.tasklet);
}

std::uint32_t Scheduler::place(std::uint32_t tasklet) const {
    return tasklets_[tasklet].site ? tasklets_[tasklet].site : code_address(tasklet);
}

void Scheduler::check_scalar(const char *what, std::uint32_t tasklet, std::uint32_t mram, std::uint32_t bytes) const {
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
        throw Broken{Rule::mram_scalar_alignment, tasklet, mram, bytes,
                     format("%s of %u bytes at 0x%08x", what, bytes, mram)};
    if (mram % bytes != 0)
        throw Broken{Rule::mram_scalar_alignment, tasklet, mram, bytes,
                     format("%s of %u bytes at 0x%08x: the address must be a multiple of the size", what, bytes, mram)};
    if (!Memory::in_mram(mram, bytes))
        throw Broken{Rule::mram_scalar_range, tasklet, mram, bytes,
                     format("%s of %u bytes at 0x%08x: MRAM is 0x08000000 to 0x0c000000", what, bytes, mram)};
}

void Scheduler::mram_load(std::uint32_t tasklet, std::uint32_t mram, std::uint32_t bytes, bool is_volatile) {
    check_scalar("load", tasklet, mram, bytes);
    races_.mram_load(tasklet, mram, bytes, is_volatile, place(tasklet));
    tasklets_[tasklet].state = State::dma;
    in_pipeline_--;
    transfer(tasklet, true, mram & ~7u, 0, 8, true);
}

void Scheduler::mram_store(std::uint32_t tasklet, std::uint32_t mram, std::uint32_t bytes, std::uint64_t value) {
    check_scalar("store", tasklet, mram, bytes);
    races_.mram_store(tasklet, mram, bytes, value, place(tasklet));
    writing_[tasklet] = {true, mram, bytes, value, 0};
    nr_writing_++;
    tasklets_[tasklet].state = State::dma;
    in_pipeline_--;
    transfer(tasklet, bytes < 8, mram & ~7u, 0, 8, true);
}

void Scheduler::reason(std::uint32_t tasklet, std::uint32_t reason, std::uint32_t address, std::uint32_t value) {
    auto text = [&] { return address ? string_at(memory_, tasklet, address, 400) : std::string(); };
    switch (reason) {
    case FOUNDRY_DPU_REASON_HALT: throw Broken{Rule::halt, tasklet, 0, 0, "the program calls halt()"};
    case FOUNDRY_DPU_REASON_ASSERT: throw Broken{Rule::assertion, tasklet, 0, 0, text()};
    case FOUNDRY_DPU_REASON_HEAP_FULL:
        throw Broken{Rule::heap_full, tasklet, address, value,
                     format("an allocation of %u bytes at 0x%08x does not fit: the heap ends at 0x%08x, where %u bytes "
                            "of stacks of "
                            "%u tasklets begin",
                            value, address, program_.heap_end,
                            FOUNDRY_DPU_WRAM_BASE + FOUNDRY_DPU_WRAM_SIZE - program_.heap_end, nr_tasklets_)};
    case FOUNDRY_DPU_REASON_DIVISION_BY_ZERO:
        throw Broken{Rule::arithmetic, tasklet, 0, 0, "an integer is divided by 0"};
    case FOUNDRY_DPU_REASON_UNREACHABLE:
        throw Broken{Rule::illegal_instruction, tasklet, address, 0,
                     "the program reaches code that it says cannot be reached"};
    case FOUNDRY_DPU_REASON_ABORT: throw Broken{Rule::halt, tasklet, 0, 0, "the program calls abort() " + text()};
    case FOUNDRY_DPU_REASON_ALLOCATOR:
        throw Broken{Rule::allocator, tasklet, address, value,
                     format("the block at 0x%08x is not one that was allocated", address)};
    case FOUNDRY_DPU_REASON_MISALIGNED:
        throw Broken{Rule::wram_alignment, tasklet, address, value,
                     format("an access of %u bytes at 0x%08x, which is not a multiple of %u", value, address, value)};
    case FOUNDRY_DPU_REASON_STACK:
        throw Broken{Rule::stack_overflow, tasklet, 0, value,
                     format("the functions that have been called need at least %d bytes on a DPU, %u of them the last one; the "
                            "stack of tasklet %u has %u bytes (STACK_SIZE_DEFAULT)",
                            static_cast<int>(memory_.stack_bytes(tasklet)) - tasklets_[tasklet].stack_left, value,
                            tasklet, memory_.stack_bytes(tasklet))};
    default: throw Broken{Rule::halt, tasklet, address, value, format("the program ends itself for reason %u", reason)};
    }
}

void Scheduler::report_slack() {
    for (std::uint32_t i = 0; i < nr_tasklets_; i++)
        if (std::uint32_t used = memory_.used_slack(i))
            log_.report(format("tasklet %u has used %u bytes of stack here, where frames are larger than a DPU's; its stack has "
                               "%u (STACK_SIZE_DEFAULT), and whether a DPU's frames fit is not certain",
                               i, used, memory_.stack_bytes(i)));
}

void Scheduler::deadlock() const {
    auto waits = [&](std::uint32_t i) {
        return tasklets_[i].state == State::idle ? std::string("ended") : "waits " + synchronization_.waits_for(i);
    };
    std::string text = "no tasklet can go on";
    std::uint32_t first = shared::NO_TASKLET;
    for (std::uint32_t i = 0, end; i < nr_tasklets_; i = end) {
        for (end = i + 1; end < nr_tasklets_ && waits(end) == waits(i);) end++;
        text += i == 0 ? ": " : "; ";
        text += end == i + 1 ? format("tasklet %u ", i) : format("each of tasklets %u to %u ", i, end - 1);
        text += waits(i);
        if (first == shared::NO_TASKLET && tasklets_[i].state != State::idle) first = i;
    }
    throw Broken{Rule::deadlock, first, 0, 0, text};
}
