// Installs a seccomp filter.
#include "confine.h"

#include <cstddef>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace {

constexpr sock_filter load(unsigned offset) { return {BPF_LD | BPF_W | BPF_ABS, 0, 0, offset}; }
constexpr sock_filter give(unsigned value) { return {BPF_RET | BPF_K, 0, 0, value}; }
// Goes on behind the next instruction unless the value is `value`.
constexpr sock_filter unless(unsigned value) { return {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value}; }
constexpr sock_filter when(unsigned value) { return {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, value}; }

}  // namespace

void confine() {
    sock_filter program[] = {
        load(offsetof(seccomp_data, arch)),
        when(AUDIT_ARCH_X86_64),
        give(SECCOMP_RET_TRAP),
        load(offsetof(seccomp_data, nr)),
        unless(SYS_futex), give(SECCOMP_RET_ALLOW),
        unless(SYS_rt_sigreturn), give(SECCOMP_RET_ALLOW),
        unless(SYS_setitimer), give(SECCOMP_RET_ALLOW),
        unless(SYS_exit_group), give(SECCOMP_RET_ALLOW),
        // The allocator of the C++ library.
        unless(SYS_brk), give(SECCOMP_RET_ALLOW),
        unless(SYS_mmap), give(SECCOMP_RET_ALLOW),
        unless(SYS_munmap), give(SECCOMP_RET_ALLOW),
        unless(SYS_mremap), give(SECCOMP_RET_ALLOW),
        unless(SYS_madvise), give(SECCOMP_RET_ALLOW),
        // signal(), on the way out after a fault of the emulator itself.
        unless(SYS_rt_sigaction), give(SECCOMP_RET_ALLOW),
        give(SECCOMP_RET_TRAP),
    };
    sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}
