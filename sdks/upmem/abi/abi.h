/* The interface between a compiled DPU program and the emulator that runs it: addresses, services, ELF symbols.
 *
 * Read by the compiler (which places sections and emits service calls), by the device runtime (C, compiled for the
 * DPU), by the DPU process (which serves the calls) and by the host library (which reads the ELF). Only macros, so that
 * C, C++ and linker scripts run through the preprocessor can all include it.
 *
 * A DPU program is an ELF32 executable for x86-64's x32 ABI (64-bit instructions, 32-bit pointers, SSE2 only), linked
 * at fixed addresses in the low 4 GiB, where nothing else of the emulator lives.
 */
#ifndef FOUNDRY_DPU_ABI_H
#define FOUNDRY_DPU_ABI_H

/* Raised with every incompatible change; the program carries it in the absolute symbol of FOUNDRY_DPU_SYMBOL_ABI. */
#define FOUNDRY_DPU_ABI_VERSION 3

/* ---- Memory map ------------------------------------------------------------------------------------------------ */

/* MRAM, by the hardware's addresses. It is not mapped here in the DPU process: only services access it. */
#define FOUNDRY_DPU_MRAM_BASE 0x08000000
#define FOUNDRY_DPU_MRAM_SIZE 0x04000000

/* WRAM: .data, .rodata, .bss, __host variables, then the heap up to FOUNDRY_DPU_SYMBOL_HEAP_END. */
#define FOUNDRY_DPU_WRAM_BASE 0x10000000
#define FOUNDRY_DPU_WRAM_SIZE 0x00010000

/* Stacks, one slot a tasklet. A stack of S bytes lies at [slot + BOTTOM + S, slot + BOTTOM + 2 * S). The S bytes below it
 * are slack, for frames that are larger here than a DPU's, see STACK_LEFT; below that nothing is mapped for BOTTOM bytes,
 * more than any frame that fits into WRAM. */
#define FOUNDRY_DPU_STACK_BASE 0x20000000
#define FOUNDRY_DPU_STACK_SLOT 0x00040000
#define FOUNDRY_DPU_STACK_BOTTOM 0x00020000

/* Text only; read-only data is in WRAM, as on hardware. */
#define FOUNDRY_DPU_CODE_BASE 0x40000000
#define FOUNDRY_DPU_CODE_SIZE 0x01000000

/* The emulator's entry points, to be given to the linker as absolute symbols of these names.
 *
 *   uint64_t __foundry_service(uint32_t op, uint32_t a, uint32_t b, uint32_t c)   ordinary C calling convention
 *   void __foundry_yield(void)   the same as op YIELD, but keeps every register (LLVM's preserve_allcc, SSE2), so that
 *                                the call in a loop's cold path costs the hot path nothing
 *   void __foundry_exit(void)    where a tasklet ends; the entry point may also simply return
 *   void __foundry_access(uint32_t address, uint32_t what, uint32_t site, uint64_t value)
 *                                an access to WRAM that is about to happen and is new in the tasklet's epoch, see
 *                                SHADOW; keeps every register. what: FOUNDRY_DPU_ACCESS_*; site: of the source line, or
 *                                0; value: what is stored
 */
#define FOUNDRY_DPU_SERVICE 0x50000000 /* __foundry_service */
#define FOUNDRY_DPU_YIELD 0x50000040   /* __foundry_yield */
#define FOUNDRY_DPU_EXIT 0x50000080    /* __foundry_exit */
#define FOUNDRY_DPU_ACCESS 0x500000c0  /* __foundry_access */

/* Memory that the emulator keeps for the tasklet that is running, readable and writable.
 *
 *   BUDGET  int64_t   instructions that the tasklet may still issue before it has to yield. Every basic block subtracts
 *                     its modelled cost; a loop's back edge (and the entry of a recursive function) that finds it below
 *                     zero calls __foundry_yield. This is how modelled instructions are counted at all.
 *   TASKLET uint32_t  the number of the tasklet: me(), llvm.dpu.tid.i32. Constant for a tasklet's life.
 *   SITE    uint32_t  the site of the next transfer or MRAM access, set before its service is called; 0: not known.
 *   EPOCH   uint64_t  a byte, eight times. It changes whenever others may have learned what the tasklet has done.
 *   SHADOW  uint32_t  address of two bytes for each byte that the tasklet may access: at (address & SHADOW_MASK), the
 *                     EPOCH in which it has last read or written the byte; SHADOW_WRITES further on, in which it has
 *                     last written it. An access for which all of them are the EPOCH of now is not new; for any other
 *                     the code calls __foundry_access before it.
 *   LINE    uint32_t  address of the counters of the source line (see LINES) of the next transfer or MRAM access, set
 *                     before its service is called; 0: not counted.
 *   CALLER  uint32_t  the same, of the last call that a function with lines has made: what a function without lines
 *                     does counts there. The emulator keeps it for each tasklet.
 *   STACK_LEFT int32_t bytes of the tasklet's stack that the frames of a DPU would leave. A function subtracts what its
 *                     frame has on a DPU at least: its variables that live at the same time, and 8 bytes for where it
 *                     returns to and for the caller's stack pointer if it calls others. Below zero it faults. The
 *                     emulator keeps it for each tasklet.
 *   CALL_SITE uint32_t  the site of the last call of another file's function: what the library does is done there. The
 *                     emulator keeps it for each tasklet.
 */
#define FOUNDRY_DPU_BUDGET 0x50001000
#define FOUNDRY_DPU_TASKLET 0x50001008
#define FOUNDRY_DPU_SITE 0x5000100c
#define FOUNDRY_DPU_EPOCH 0x50001010
#define FOUNDRY_DPU_SHADOW 0x50001018
#define FOUNDRY_DPU_LINE 0x5000101c
#define FOUNDRY_DPU_CALLER 0x50001020
#define FOUNDRY_DPU_CALL_SITE 0x50001024
#define FOUNDRY_DPU_STACK_LEFT 0x50001028

/* Shadows: one stride a tasklet. WRAM and the stacks do not collide under the mask. */
#define FOUNDRY_DPU_SHADOW_BASE 0x70000000
#define FOUNDRY_DPU_SHADOW_STRIDE 0x01000000
#define FOUNDRY_DPU_SHADOW_WRITES 0x00800000
#define FOUNDRY_DPU_SHADOW_MASK 0x007fffff

/* Sites: zero-terminated texts "FILE:LINE", which the host takes from the program for the reports of races. A site is
 * the address of one. */
#define FOUNDRY_DPU_SITE_BASE 0x68000000

/* Source lines, in programs that count by line (-foundry-count-lines): a record for each, the zero-terminated text
 * "PATH:LINE", or the name of a function without lines that no line calls, padded with zeros to a multiple of 16 bytes. A record at
 * LINES_BASE + x has two counters of 64 bits at COUNTERS_BASE + x: modelled instructions, which the code adds up, and
 * modelled cycles of the DMA engine. The memory of counters exists in such programs only. */
#define FOUNDRY_DPU_LINES_BASE 0x69000000
#define FOUNDRY_DPU_COUNTERS_BASE 0x6a000000
#define FOUNDRY_DPU_LINE_ALIGNMENT 16

/* The kind of an access: its size in bytes in the low 16 bits, and these flags: */
#define FOUNDRY_DPU_ACCESS_READ 0x10000
#define FOUNDRY_DPU_ACCESS_WRITE 0x20000
/* The tasklet waits in a loop for the value to change. */
#define FOUNDRY_DPU_ACCESS_SPIN 0x40000
/* `value` is what is written. */
#define FOUNDRY_DPU_ACCESS_VALUE 0x80000

#define FOUNDRY_DPU_MAX_TASKLETS 24

/* ---- Services: op in the low 8 bits; arguments a, b, c; result ----------------------------------------------------
 *
 * The compiled code counts no instructions for a call of a service: the emulator adds its cost from the cycle model's
 * table. */

/* The tasklet has used up its budget. */
#define FOUNDRY_DPU_OP_YIELD 0
/* The tasklet ends. Does not return. */
#define FOUNDRY_DPU_OP_EXIT 1
/* The program reports an error. a: FOUNDRY_DPU_REASON_*, b: address or 0, c: size or value. Does not return. */
#define FOUNDRY_DPU_OP_FAULT 2

/* One DMA transfer: a: MRAM address, b: WRAM (or stack) address, c: bytes. All rules are checked by the service. Both
 * take the MRAM address first. */
#define FOUNDRY_DPU_OP_MRAM_READ 3
#define FOUNDRY_DPU_OP_MRAM_WRITE 4
/* A scalar access through an MRAM pointer: an 8-byte DMA, or a read-modify-write of one.
 * LOAD: op | volatile << 8; a: MRAM address, b: bytes (1, 2, 4, 8); result: the value, zero-extended.
 * STORE: op | bytes << 8; a: MRAM address, b: low half of the value, c: high half.
 * An access that is not aligned to its size faults. */
#define FOUNDRY_DPU_OP_MRAM_LOAD 5
#define FOUNDRY_DPU_OP_MRAM_STORE 6

/* a: WRAM address of a struct of 4 bytes { uint8_t wait_queue, count, initial_count, lock }, all but count and
 * initial_count (both the number of tasklets) for the emulator's use. */
#define FOUNDRY_DPU_OP_BARRIER_WAIT 7
/* a: the mutex's identity, any 32-bit value (its address). TRYLOCK's result: 0 when it was free and is now held, else 1. */
#define FOUNDRY_DPU_OP_MUTEX_LOCK 8
#define FOUNDRY_DPU_OP_MUTEX_TRYLOCK 9
#define FOUNDRY_DPU_OP_MUTEX_UNLOCK 10
/* a: WRAM address of a struct of 4 bytes { uint8_t wait_queue; int8_t count, initial_count; uint8_t lock }. */
#define FOUNDRY_DPU_OP_SEM_TAKE 11
#define FOUNDRY_DPU_OP_SEM_GIVE 12
/* a: the tasklet that will notify; WAIT_FOR and NOTIFY meet, the first of the two waits for the other. */
#define FOUNDRY_DPU_OP_HANDSHAKE_WAIT_FOR 13
#define FOUNDRY_DPU_OP_HANDSHAKE_NOTIFY 14
/* The instructions `acquire` and `release`: a: the atomic bit (0..255). ACQUIRE's result: 0 when it was free and is now
 * taken, else 1; it never waits. Anybody may release. */
#define FOUNDRY_DPU_OP_ACQUIRE 15
#define FOUNDRY_DPU_OP_RELEASE 16

/* a: FOUNDRY_DPU_PERF_*; b: not 0 to count from zero. Result: the count before. */
#define FOUNDRY_DPU_OP_PERF_CONFIG 17
/* Result: modelled cycles or instructions since the last reset. a: FOUNDRY_DPU_PERF_SAME for what is counted, or _CYCLES
 * or _INSTRUCTIONS for one of the two that FOUNDRY_DPU_PERF_BOTH counts and FOUNDRY_DPU_PERF_NEITHER has stopped. */
#define FOUNDRY_DPU_OP_PERF_GET 18

/* printf. a: address of the format, b: address of the caller's va_list (x32's: four 32-bit words gp_offset, fp_offset,
 * overflow_arg_area, reg_save_area). Result: bytes written. The log is what dpu_log_read shows. */
#define FOUNDRY_DPU_OP_PRINTF 19
/* a: address, b: bytes: written to the log as they are. */
#define FOUNDRY_DPU_OP_LOG 20

/* A tasklet stops until another one resumes it. STOP; RESUME: a: the tasklet. A resume of one that does not stop is
 * kept until it does. */
#define FOUNDRY_DPU_OP_STOP 21
#define FOUNDRY_DPU_OP_RESUME 22

#define FOUNDRY_DPU_PERF_SAME 0
#define FOUNDRY_DPU_PERF_CYCLES 1
#define FOUNDRY_DPU_PERF_INSTRUCTIONS 2
#define FOUNDRY_DPU_PERF_NOTHING 3
#define FOUNDRY_DPU_PERF_NEITHER 6
#define FOUNDRY_DPU_PERF_BOTH 7
#define FOUNDRY_DPU_PERF_V1A 8 /* added to the last two by programs for v1A, which has no two counters: a fault */

#define FOUNDRY_DPU_REASON_HALT 1             /* halt() */
#define FOUNDRY_DPU_REASON_ASSERT 2           /* assert(): b: address of the message, a string */
#define FOUNDRY_DPU_REASON_HEAP_FULL 3        /* mem_alloc and friends: b: heap pointer, c: bytes asked for */
#define FOUNDRY_DPU_REASON_DIVISION_BY_ZERO 4 /* b: 0, c: 0 */
#define FOUNDRY_DPU_REASON_UNREACHABLE 5      /* IR's unreachable, __builtin_trap */
#define FOUNDRY_DPU_REASON_ABORT 6            /* b: address of a message or 0 */
#define FOUNDRY_DPU_REASON_ALLOCATOR 7        /* misuse of an allocator (double free, ...): b: address of the block */
#define FOUNDRY_DPU_REASON_MISALIGNED 8       /* a load or store in WRAM: b: its address, c: its size */
#define FOUNDRY_DPU_REASON_STACK 9            /* STACK_LEFT is below zero: b: 0, c: bytes of the last frame */

/* ---- ELF ------------------------------------------------------------------------------------------------------- */

/* e_entry: void (*)(void), called once by every tasklet on its own stack.
 *
 * PT_LOAD segments: code (R E) in the code range; WRAM in the WRAM range, bytes beyond p_filesz zeroed; MRAM in the MRAM
 * range, bytes beyond p_filesz left as they are (so noinit sections are NOBITS, and others are in the file).
 *
 * Absolute symbols:
 *   ABI            FOUNDRY_DPU_ABI_VERSION
 *   NR_TASKLETS    number of tasklets, 1..24
 *   STACK_SIZE     bytes of stack of each tasklet, a multiple of 8; STACK_SIZE_TASKLET_<n> overrides it for one
 *   INSTRUCTIONS   modelled IRAM instructions of the program
 * Addresses:
 *   HEAP_START, HEAP_END   of the WRAM heap; HEAP_END = WRAM end - sum of all stacks; both 8-aligned
 *   MRAM_END               __sys_used_mram_end: its address is the base of the MRAM heap
 * A symbol that host code names (dpu_copy_to, dpu_get_symbol, ...) has type OBJECT and its size in st_size. Of variables
 * in WRAM, only those are visible to the host that lie in an output section of the name FOUNDRY_DPU_SECTION_HOST, where
 * __host puts them; of variables in MRAM, all.
 */
#define FOUNDRY_DPU_SYMBOL_ABI "__foundry_abi"
#define FOUNDRY_DPU_SYMBOL_NR_TASKLETS "NR_TASKLETS"
#define FOUNDRY_DPU_SYMBOL_STACK_SIZE "STACK_SIZE_DEFAULT"
#define FOUNDRY_DPU_SYMBOL_STACK_SIZE_TASKLET "STACK_SIZE_TASKLET_"
#define FOUNDRY_DPU_SYMBOL_INSTRUCTIONS "__foundry_iram_instructions"
/* In programs with an object that was compiled for one tasklet, without the check of races. */
#define FOUNDRY_DPU_SYMBOL_ONE_TASKLET "__foundry_one_tasklet"
#define FOUNDRY_DPU_SYMBOL_HEAP_START "__foundry_heap_start"
#define FOUNDRY_DPU_SYMBOL_HEAP_END "__foundry_heap_end"
#define FOUNDRY_DPU_SYMBOL_MRAM_END "__sys_used_mram_end"

#define FOUNDRY_DPU_SECTION_HOST ".dpu_host"
/* The texts of sites. Not loaded. */
#define FOUNDRY_DPU_SECTION_SITES ".foundry.sites"
/* The records of source lines. Not loaded. */
#define FOUNDRY_DPU_SECTION_LINES ".foundry.lines"

/* ---- Poison ---------------------------------------------------------------------------------------------------- */

/* The contents of memory that was never written, in 16-bit units: a quiet NaN as f16, bf16, f32 and f64, 0x7ffa7ffa as
 * int32. It fills MRAM, the heap and the stacks; .bss is zero as in C. */
#define FOUNDRY_DPU_POISON 0x7ffa

#endif
