// Probes of dpu_probe.h, and descriptions of ranks.
#include "dpu_description.h"
#include "dpu_probe.h"

#include <algorithm>
#include <ctime>

#include "../abi/abi.h"
#include "report.h"

namespace {

double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

} // namespace

extern "C" {

dpu_description_t dpu_get_description(struct dpu_rank_t *) {
    // A rank of v1A: 8 slices of 8 DPUs.
    static constexpr _dpu_description_t description = {
        {{8, 8}, {FOUNDRY_DPU_MRAM_SIZE, FOUNDRY_DPU_WRAM_SIZE, 4096}, {FOUNDRY_DPU_MAX_TASKLETS, 256}, {350}},
        FUNCTIONAL_SIMULATOR};
    return &description;
}

dpu_error_t dpu_probe_init(const char *name, struct dpu_probe_t *probe) {
    *probe = {name, 0, -1, 0, 0, 0};
    return DPU_OK;
}

dpu_error_t dpu_probe_deinit(struct dpu_probe_t *) { return DPU_OK; }

dpu_error_t dpu_probe_start(struct dpu_probe_t *probe) {
    probe->started = now();
    return DPU_OK;
}

dpu_error_t dpu_probe_stop(struct dpu_probe_t *probe) {
    if (probe->started < 0) return refuse(DPU_ERR_INTERNAL, "dpu_probe_stop: the probe was not started");
    double passed = now() - probe->started;
    probe->started = -1;
    probe->least = probe->count == 0 ? passed : std::min(probe->least, passed);
    probe->most = std::max(probe->most, passed);
    probe->sum += passed;
    probe->count++;
    return DPU_OK;
}

dpu_error_t dpu_probe_get(struct dpu_probe_t *probe, dpu_probe_type_t type, dpu_probe_value_t value, double *result) {
    if (type != DPU_TIME) return refuse(DPU_ERR_INTERNAL, "dpu_probe_get: the emulator does not model energy");
    if (probe->count == 0) return refuse(DPU_ERR_INTERNAL, "dpu_probe_get: the probe has measured nothing");
    switch (value) {
    case DPU_AVERAGE: *result = probe->sum / probe->count; break;
    case DPU_MIN: *result = probe->least; break;
    case DPU_MAX: *result = probe->most; break;
    case DPU_SUM: *result = probe->sum; break;
    }
    return DPU_OK;
}
}
