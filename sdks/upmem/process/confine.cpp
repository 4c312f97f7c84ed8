// Installs a seccomp filter.
#include "confine.h"

#include <cstddef>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <vector>

namespace {

constexpr sock_filter load(unsigned offset) { return {BPF_LD | BPF_W | BPF_ABS, 0, 0, offset}; }
constexpr sock_filter give(unsigned value) { return {BPF_RET | BPF_K, 0, 0, value}; }
// Does the next instruction only if the value is, or is not, what was loaded.
constexpr sock_filter if_equal(unsigned value) { return {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value}; }
constexpr sock_filter if_other(unsigned value) { return {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, value}; }

// Launches: waiting, the watch, signals of tasklets, the end; signal(), on the way out after a fault of the emulator itself;
// and the allocator of the C++ library.
constexpr unsigned ALLOWED[] = {SYS_futex, SYS_setitimer, SYS_rt_sigreturn, SYS_exit_group, SYS_rt_sigaction,
                                SYS_brk,   SYS_mmap,      SYS_munmap,       SYS_mremap,     SYS_madvise};

} // namespace

void confine() {
    std::vector<sock_filter> program = {load(offsetof(seccomp_data, arch)), if_other(AUDIT_ARCH_X86_64),
                                        give(SECCOMP_RET_TRAP), load(offsetof(seccomp_data, nr))};
    for (unsigned call : ALLOWED) {
        program.push_back(if_equal(call));
        program.push_back(give(SECCOMP_RET_ALLOW));
    }
    program.push_back(give(SECCOMP_RET_TRAP));
    sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}
