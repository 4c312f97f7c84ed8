/* Probes: time that passes between start and stop. Energy is not modelled, and asking for it is an error. */
#ifndef DPU_PROBE_H
#define DPU_PROBE_H

#include <dpu_error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpu_probe_type { DPU_TIME, DPU_ENERGY } dpu_probe_type_t;
typedef enum dpu_probe_value { DPU_AVERAGE, DPU_MIN, DPU_MAX, DPU_SUM } dpu_probe_value_t;

struct dpu_probe_t {
    const char *name;
    unsigned count; /* of measurements that were stopped */
    double started, sum, least, most; /* seconds */
};

dpu_error_t dpu_probe_init(const char *name, struct dpu_probe_t *probe);
dpu_error_t dpu_probe_deinit(struct dpu_probe_t *probe);
dpu_error_t dpu_probe_start(struct dpu_probe_t *probe);
dpu_error_t dpu_probe_stop(struct dpu_probe_t *probe);
/* Seconds of the host's time. */
dpu_error_t dpu_probe_get(struct dpu_probe_t *probe, dpu_probe_type_t type, dpu_probe_value_t value, double *result);

#ifdef __cplusplus
}
#endif

#endif
