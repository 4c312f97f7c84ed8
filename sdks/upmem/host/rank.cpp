// One rank: its memory, its DPUs' processes, its launches.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine.h"
#include "report.h"
#include "server.h"

namespace {

// A mistake in a program is usually the same in every DPU.
constexpr unsigned FAULTS_SHOWN = 4;

} // namespace

bool dpu_t::in_fault() const { return control().in_fault != 0; }

dpu_rank_t::dpu_rank_t(std::uint32_t rank_number, std::uint32_t nr_dpus) : number(rank_number), dpus(nr_dpus) {
    std::size_t bytes = shared::rank_bytes(nr_dpus);
    int file = memfd_create("dpu-rank", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) {
        if (file >= 0) close(file);
        refuse(DPU_ERR_SYSTEM, "no memory for a rank of %u DPUs: %s", nr_dpus, std::strerror(errno));
        throw std::bad_alloc();
    }
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (memory == MAP_FAILED) {
        close(file);
        refuse(DPU_ERR_SYSTEM, "cannot map %zu bytes for a rank of %u DPUs: %s", bytes, nr_dpus, std::strerror(errno));
        throw std::bad_alloc();
    }
    memory_ = static_cast<std::uint8_t *>(memory);
    // A child of the host program that forks gets to see the same DPUs, as it would see the same hardware.
    for (std::uint32_t i = 0; i < nr_dpus; i++) {
        dpus[i].rank = this;
        dpus[i].number = i;
        dpus[i].slot = memory_ + shared::slot_offset(i);
    }
    bool known = ask_server({shared::Request::add_rank, number, nr_dpus, 0, 0}, file);
    close(file);
    if (!known) {
        munmap(memory_, bytes);
        throw std::runtime_error("no process server");
    }
}

dpu_rank_t::~dpu_rank_t() {
    // A child that ends takes its own view of the rank with it, not its parent's DPUs.
    if (server_is_ours() && !server_died()) ask_server({shared::Request::remove_rank, number, 0, 0, 0});
    munmap(memory_, shared::rank_bytes(static_cast<std::uint32_t>(dpus.size())));
}

bool dpu_rank_t::start(std::uint64_t mask, const dpu_program_t &program) {
    process_++;
    for (dpu_t &dpu : dpus) {
        if (!(mask >> dpu.number & 1)) continue;
        shared::Control &control = dpu.control();
        control.process.store(process_);
        control.in_fault = 0;
        control.wait_status = 0;
        control.fault = {};
        control.statistics = {};
        control.log_bytes = control.log_dropped = 0;
        control.program = program.layout;
    }
    return ask_server({shared::Request::start, number, static_cast<std::uint32_t>(dpus.size()), process_, mask},
                      program.code);
}

void dpu_rank_t::launch(std::uint64_t mask) {
    running_ |= mask;
    header().running.fetch_add(static_cast<std::uint32_t>(__builtin_popcountll(mask)));
    for (dpu_t &dpu : dpus) {
        if (!(mask >> dpu.number & 1)) continue;
        shared::Control &control = dpu.control();
        control.report_bytes = control.reports_dropped = 0;
        std::uint32_t asked = control.ended.load() + 1;
        control.asked.store(asked);
        shared::futex_wake(control.asked);
        if (dpu.dead()) shared::record_end(header(), control, asked);
    }
}

bool dpu_rank_t::ended() const {
    for (const dpu_t &dpu : dpus)
        if (running_ >> dpu.number & 1 && dpu.control().ended.load() != dpu.control().asked.load()) return false;
    return true;
}

// All processes have died with the server, so this records that their launches have ended.
void dpu_rank_t::bury() {
    for (dpu_t &dpu : dpus) {
        shared::Control &control = dpu.control();
        std::uint32_t asked = control.asked.load();
        control.died.store(control.process.load());
        if (control.ended.load() != asked) shared::record_end(header(), control, asked);
    }
}

bool dpu_rank_t::finish(bool wait, dpu_error_t &error) {
    error = DPU_OK;
    if (!running()) return true;
    while (true) {
        std::uint32_t seen = header().ends.load();
        if (ended()) break;
        if (!wait) {
            if (server_died()) bury();
            if (!ended()) return false;
            break;
        }
        shared::futex_wait(header().ends, seen, 1);
        if (header().ends.load() == seen && server_died()) bury();
    }
    unsigned faults = 0, reporting = 0;
    for (dpu_t &dpu : dpus) {
        if (!(running_ >> dpu.number & 1)) continue;
        if (dpu.control().report_bytes > 0 && ++reporting <= FAULTS_SHOWN) show_reports(dpu);
        if (!dpu.in_fault() && dpu.dead()) explain(dpu);
        if (!dpu.in_fault()) continue;
        error = DPU_ERR_DPU_FAULT;
        if (++faults <= FAULTS_SHOWN) refuse(error, "%s", dpu.control().fault.message);
    }
    if (faults > FAULTS_SHOWN)
        refuse(error, "%u more DPUs of rank %u are in fault; dpu_log_read tells why", faults - FAULTS_SHOWN, number);
    if (reporting > FAULTS_SHOWN)
        note("%u more DPUs of rank %u report something; dpu_log_read tells what", reporting - FAULTS_SHOWN, number);
    running_ = 0;
    return true;
}

void dpu_rank_t::show_reports(const dpu_t &dpu) const {
    const shared::Control &control = dpu.control();
    for (std::uint32_t at = 0; at < control.report_bytes;) {
        note("dpu %u of rank %u: %s", dpu.number, number, control.reports + at);
        at += static_cast<std::uint32_t>(std::strlen(control.reports + at)) + 1;
    }
    if (control.reports_dropped > 0)
        note("dpu %u of rank %u: %u more reports; dpu_log_read has them", dpu.number, number, control.reports_dropped);
}

// A DPU whose process has died without a word is in fault too.
void dpu_rank_t::explain(dpu_t &dpu) {
    shared::Control &control = dpu.control();
    int status = control.wait_status;
    char how[64] = "it could not be started, or was killed with the process server";
    if (status != 0 && WIFSIGNALED(status))
        std::snprintf(how, sizeof(how), "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (status != 0 && WIFEXITED(status))
        std::snprintf(how, sizeof(how), "exit status %d", WEXITSTATUS(status));
    control.in_fault = 1;
    control.fault.rule = shared::Rule::process_died;
    control.fault.tasklet = shared::NO_TASKLET;
    std::snprintf(control.fault.message, sizeof(control.fault.message), "dpu %u of rank %u: the DPU's process died: %s",
                  dpu.number, number, how);
}
