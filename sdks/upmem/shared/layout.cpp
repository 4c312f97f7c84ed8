// How host and DPU processes tell each other that something has happened: futexes in the shared memory.
#include "layout.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace shared {

void futex_wait(std::atomic<std::uint32_t> &word, std::uint32_t seen, int seconds) {
    timespec time = {seconds, 0};
    syscall(SYS_futex, &word, FUTEX_WAIT, seen, seconds > 0 ? &time : nullptr, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t> &word) {
    syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool record_end(Header &header, Control &control, std::uint32_t asked) {
    std::uint32_t before = asked - 1;
    if (!control.ended.compare_exchange_strong(before, asked)) return false;
    bool last = header.running.fetch_sub(1) == 1;
    header.ends.fetch_add(1);
    if (last) futex_wake(header.ends);
    return true;
}

} // namespace shared
