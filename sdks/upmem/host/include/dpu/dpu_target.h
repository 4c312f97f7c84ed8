/* What DPUs may be: of these, this library has the simulator's. */
#ifndef DPU_TARGET_H
#define DPU_TARGET_H

typedef enum _dpu_type_t { FUNCTIONAL_SIMULATOR, HW, BACKUP_SPI } dpu_type_t;

#endif
