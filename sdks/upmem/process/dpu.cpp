// A DPU's process: maps the memories, waits for launches, runs them, reports faults.
#include "dpu.h"

#include <cstdio>
#include <cstring>
#include <exception>
#include <sys/mman.h>
#include <unistd.h>

#include "confine.h"
#include "log.h"
#include "memory.h"
#include "rules.h"
#include "scheduler.h"
#include "signals.h"

namespace {

std::uint8_t *map(int file, std::size_t offset, std::size_t bytes) {
    void *at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, static_cast<off_t>(offset));
    if (at == MAP_FAILED) throw std::bad_alloc();
    return static_cast<std::uint8_t *>(at);
}

void report(shared::Control &control, Log &log, std::uint32_t rank, std::uint32_t dpu, const Broken &broken,
            std::uint32_t code, const std::string &around) {
    shared::Fault &fault = control.fault;
    fault.rule = broken.rule;
    fault.tasklet = broken.tasklet;
    fault.address = broken.address;
    fault.size = broken.size;
    fault.code_address = code;
    std::string who = broken.tasklet == shared::NO_TASKLET ? "" : format("tasklet %u: ", broken.tasklet);
    std::string where = code == 0 ? "" : format(" (code 0x%08x%s)", code, around.c_str());
    std::string text = format("dpu %u of rank %u: %s%s: %s%s", dpu, rank, who.c_str(), rule_name(broken.rule),
                              broken.text.c_str(), where.c_str());
    std::snprintf(fault.message, sizeof(fault.message), "%s", text.c_str());
    control.in_fault = 1;
    text += '\n';
    log.add(text.data(), text.size());
}

void serve(int rank, std::uint32_t rank_number, std::uint32_t dpu, std::uint32_t process, int code) {
    auto *header = reinterpret_cast<shared::Header *>(map(rank, 0, shared::HEADER_BYTES));
    std::uint8_t *slot = map(rank, shared::slot_offset(dpu), shared::SLOT_BYTES);
    shared::Control &control = shared::control_of(slot);
    Memory memory(slot, rank, shared::slot_offset(dpu), code, control.program);
    Log log(control, slot + shared::LOG_OFFSET);
    Scheduler scheduler(memory, control, log);
    close(rank);
    close(code);
    install_signal_handlers();
    confine();
    for (;;) {
        std::uint32_t done = control.ended.load();
        std::uint32_t asked = control.asked.load();
        // The host replaces a process before it requests launches of the new one, and the server may not have ended
        // this one yet. Such a request is for the new program.
        if (asked == done || control.process.load() != process) {
            shared::futex_wait(control.asked, asked, 0);
            continue;
        }
        log.clear();
        watch(true);
        try {
            scheduler.launch();
        } catch (const Broken &broken) {
            bool by_signal = signal_code_address() != 0;
            std::uint32_t at = by_signal ? signal_code_address() : 0;
            std::string where;
            if (broken.tasklet != shared::NO_TASKLET) {
                // The call of the service, not where it returns to: that may be of another line.
                if (!by_signal && (at = scheduler.code_address(broken.tasklet)) != 0) at--;
                // A function of a library may have no line. What has called it may have one.
                for (std::uint32_t call : scheduler.calls(broken.tasklet))
                    if (call != at) where += format(", 0x%08x", call);
                if (!where.empty()) where.replace(0, 1, ", called at");
                if (std::uint32_t site = by_signal ? 0 : scheduler.site_of(broken.tasklet))
                    where = ", " + memory.site(site);
            }
            report(control, log, rank_number, dpu, broken, at, where);
        }
        watch(false);
        bool fault = control.in_fault != 0;
        shared::record_end(*header, control, asked);
        if (fault) _exit(0);
    }
}

} // namespace

void be_dpu(int rank, std::uint32_t rank_number, std::uint32_t dpu, std::uint32_t process, int code) {
    try {
        serve(rank, rank_number, dpu, process, code);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "dpu %u of rank %u: %s\n", dpu, rank_number, error.what());
    }
    _exit(1);
}
