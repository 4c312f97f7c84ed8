// The API's launches: dpu_launch, dpu_sync, dpu_status, and what the DPUs print.
#include <dpu.h>

#include "machine.h"
#include "report.h"

namespace {

dpu_error_t check(const Selection &selection) {
    for (const dpu_t *dpu : selection.dpus()) {
        if (!dpu->program)
            return refuse(DPU_ERR_NO_PROGRAM_LOADED, "dpu_launch: dpu %u of rank %u has no program", dpu->number,
                          dpu->rank->number);
        if (dpu->in_fault())
            return refuse(DPU_ERR_DPU_FAULT,
                          "dpu_launch: dpu %u of rank %u is in fault; dpu_load makes it usable again", dpu->number,
                          dpu->rank->number);
    }
    return DPU_OK;
}

dpu_error_t start(dpu_rank_t &rank, std::uint64_t mask) {
    for (const dpu_t &dpu : rank.dpus)
        if (mask >> dpu.number & 1 && dpu.in_fault()) return DPU_ERR_DPU_FAULT;
    rank.launch(mask);
    return DPU_OK;
}

dpu_error_t read_log(const char *caller, const dpu_set_t &set, bool headed, FILE *stream) {
    Selection selection(set);
    if (!selection) return DPU_ERR_INVALID_DPU_SET;
    if (!selection.one_dpu()) return refuse(DPU_ERR_INVALID_DPU_SET, "%s: the set is not one DPU", caller);
    if (!stream) return refuse(DPU_ERR_SYSTEM, "%s: no stream (NULL)", caller);
    selection.settle(); // a fault's message is in the log
    const dpu_t &dpu = *selection.dpus().front();
    if (!dpu.program)
        return refuse(DPU_ERR_LOG_CONTEXT_MISSING, "%s: dpu %u of rank %u has no program", caller, dpu.number,
                      dpu.rank->number);
    const shared::Control &control = dpu.control();
    if (headed) std::fprintf(stream, "=== DPU#0x%x ===\n", dpu.number);
    std::fwrite(dpu.log(), 1, control.log_bytes, stream);
    if (control.log_dropped == 0) return DPU_OK;
    return refuse(DPU_ERR_LOG_BUFFER_TOO_SMALL, "%s: the log holds %zu bytes, %u more are lost", caller,
                  shared::LOG_BYTES, control.log_dropped);
}

} // namespace

extern "C" {

dpu_error_t dpu_launch(struct dpu_set_t dpu_set, dpu_launch_policy_t policy) {
    Selection selection(dpu_set);
    if (!selection) return DPU_ERR_INVALID_DPU_SET;
    if (policy != DPU_ASYNCHRONOUS && policy != DPU_SYNCHRONOUS)
        return refuse(DPU_ERR_INVALID_LAUNCH_POLICY,
                      "dpu_launch: policy %d is neither DPU_ASYNCHRONOUS nor DPU_SYNCHRONOUS",
                      static_cast<int>(policy));
    if (policy == DPU_SYNCHRONOUS)
        if (dpu_error_t error = selection.settle(); error != DPU_OK) return error;
    if (dpu_error_t error = check(selection); error != DPU_OK) return error;
    for (dpu_rank_t *rank : selection.ranks()) {
        std::uint64_t mask = selection.mask(*rank);
        if (rank->open() && !rank->running(mask))
            rank->launch(mask);
        else
            rank->jobs.push_back({[rank, mask] { return start(*rank, mask); }, nullptr});
    }
    return policy == DPU_SYNCHRONOUS ? selection.settle() : DPU_OK;
}

dpu_error_t dpu_sync(struct dpu_set_t dpu_set) {
    Selection selection(dpu_set);
    if (!selection) return DPU_ERR_INVALID_DPU_SET;
    dpu_error_t error = selection.settle();
    if (error == DPU_OK && selection.any_in_fault()) error = DPU_ERR_DPU_FAULT;
    return error;
}

dpu_error_t dpu_status(struct dpu_set_t dpu_set, bool *done, bool *fault) {
    Selection selection(dpu_set);
    if (!selection) return DPU_ERR_INVALID_DPU_SET;
    bool idle;
    dpu_error_t error = selection.progress(idle);
    if (done) *done = idle;
    if (fault) *fault = selection.any_in_fault();
    return error == DPU_ERR_DPU_FAULT ? DPU_OK : error;
}

dpu_error_t dpu_log_read(struct dpu_set_t set, FILE *stream) { return read_log("dpu_log_read", set, true, stream); }

dpu_error_t dpulog_read_for_dpu(struct dpu_t *dpu, FILE *stream) {
    dpu_set_t set = {};
    set.kind = DPU_SET_DPU;
    set.dpu = dpu;
    return read_log("dpulog_read_for_dpu", set, false, stream);
}
}
