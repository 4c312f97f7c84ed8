/* What the SDK's compiler knows without a header: the driver includes this file before every C program. */
#ifndef FOUNDRY_DPU_BUILTINS_H
#define FOUNDRY_DPU_BUILTINS_H

unsigned int __builtin_dpu_tid(void) __asm__("llvm.dpu.tid.i32") __attribute__((const, nothrow));
void __builtin_dpu_ldma(void *wram, const __attribute__((address_space(255))) void *mram,
                        unsigned int bytes) __asm__("llvm.dpu.ldma") __attribute__((nothrow));
void __builtin_dpu_sdma(const void *wram, __attribute__((address_space(255))) void *mram,
                        unsigned int bytes) __asm__("llvm.dpu.sdma") __attribute__((nothrow));

/* The SDK has it in a header that most of its headers include. */
#define __builtin_nop_() __asm__ volatile("nop")

#endif
