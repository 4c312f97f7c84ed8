// The process that forks DPU processes: the only child of a host program, started by libdpu.so with the first
// allocation.
//
// A fork of this small process is cheap, whatever size the host program has. It lives as long as the host program and
// watches its children. However it ends, they end with it.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "../shared/layout.h"
#include "../shared/messages.h"
#include "dpu.h"

namespace {

struct Rank {
    int file = -1;
    std::uint32_t nr_dpus = 0;
    std::uint8_t *memory = nullptr;

    shared::Header &header() const { return *reinterpret_cast<shared::Header *>(memory); }
    shared::Control &control(std::uint32_t dpu) const { return shared::control_of(memory + shared::slot_offset(dpu)); }
};

struct Place {
    std::uint32_t rank, dpu, process;
};

class Server {
  public:
    explicit Server(pid_t host) {
        host_ = static_cast<int>(syscall(SYS_pidfd_open, host, 0)); // -1, where there is none: poll ignores it
        sigset_t child;
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        sigprocmask(SIG_BLOCK, &child, nullptr);
        children_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    }

    void run() {
        for (;;) {
            pollfd files[] = {{shared::SERVER_SOCKET, POLLIN, 0}, {children_, POLLIN, 0}, {host_, POLLIN, 0}};
            if (poll(files, 3, -1) < 0 && errno != EINTR) break;
            if (files[1].revents) {
                signalfd_siginfo info;
                while (read(children_, &info, sizeof(info)) > 0) continue;
                reap();
            }
            if (files[2].revents) break;
            if (files[0].revents && !receive()) break;
        }
        for (auto &[child, place] : places_) kill(child, SIGKILL);
        for (auto &[number, rank] : ranks_) end(number, ~0ull);
    }

  private:
    bool receive() {
        shared::Message message;
        iovec data = {&message, sizeof(message)};
        alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))];
        msghdr header = {};
        header.msg_iov = &data;
        header.msg_iovlen = 1;
        header.msg_control = space;
        header.msg_controllen = sizeof(space);
        ssize_t got = recvmsg(shared::SERVER_SOCKET, &header, MSG_CMSG_CLOEXEC);
        if (got < 0) return errno == EINTR || errno == EAGAIN;
        if (got != sizeof(message)) return false;
        int file = -1;
        cmsghdr *extra = CMSG_FIRSTHDR(&header);
        if (extra && extra->cmsg_type == SCM_RIGHTS) std::memcpy(&file, CMSG_DATA(extra), sizeof(int));
        switch (message.request) {
        case shared::Request::add_rank: add(message, file); return true;
        case shared::Request::remove_rank: remove(message.rank); break;
        case shared::Request::start: start(message, file); break;
        case shared::Request::stop: end(message.rank, message.mask); break;
        }
        if (file >= 0) close(file);
        return true;
    }

    void add(const shared::Message &message, int file) {
        void *memory = mmap(nullptr, shared::rank_bytes(message.nr_dpus), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_NORESERVE, file, 0);
        if (memory == MAP_FAILED) std::abort();
        ranks_[message.rank] = {file, message.nr_dpus, static_cast<std::uint8_t *>(memory)};
    }

    void remove(std::uint32_t number) {
        auto found = ranks_.find(number);
        if (found == ranks_.end()) return;
        end(number, ~0ull);
        munmap(found->second.memory, shared::rank_bytes(found->second.nr_dpus));
        close(found->second.file);
        ranks_.erase(found);
    }

    void start(const shared::Message &message, int code) {
        end(message.rank, message.mask);
        const Rank &rank = ranks_.at(message.rank);
        for (std::uint32_t dpu = 0; dpu < rank.nr_dpus; dpu++) {
            if (!(message.mask >> dpu & 1)) continue;
            shared::Control &control = rank.control(dpu);
            pid_t server = getpid(), child = fork();
            if (child == 0) become(message.rank, dpu, message.process, code, server);
            if (child < 0) {
                died(rank, control, message.process, 0);
                continue;
            }
            places_[child] = {message.rank, dpu, message.process};
        }
    }

    [[noreturn]] void become(std::uint32_t number, std::uint32_t dpu, std::uint32_t process, int code, pid_t server) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != server) _exit(0);
        prctl(PR_SET_NAME, "dpu");
        prctl(PR_SET_DUMPABLE, 0);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        int file = ranks_.at(number).file;
        close(shared::SERVER_SOCKET);
        close(children_);
        if (host_ >= 0) close(host_);
        for (auto &[other, rank] : ranks_) {
            munmap(rank.memory, shared::rank_bytes(rank.nr_dpus));
            if (other != number) close(rank.file);
        }
        be_dpu(file, number, dpu, process, code);
    }

    // Ends the processes of some DPUs and waits for them: all at once, as each needs its turn on a processor to die.
    void end(std::uint32_t number, std::uint64_t mask) {
        std::vector<pid_t> ended;
        for (auto &[child, place] : places_)
            if (place.rank == number && mask >> place.dpu & 1) ended.push_back(child);
        for (pid_t child : ended) kill(child, SIGKILL);
        for (pid_t child : ended) {
            waitpid(child, nullptr, 0);
            places_.erase(child);
        }
    }

    void reap() {
        int status;
        for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
            auto found = places_.find(child);
            if (found == places_.end()) continue;
            Place place = found->second;
            places_.erase(found);
            const Rank &rank = ranks_.at(place.rank);
            died(rank, rank.control(place.dpu), place.process, status);
        }
    }

    // A process that has ended by itself: if a launch was under way, it has ended too. The order matters: the host asks
    // for a launch first and looks for deaths then, and it replaces a process before it asks for launches of the new
    // one.
    void died(const Rank &rank, shared::Control &control, std::uint32_t process, int status) {
        control.wait_status = status;
        control.died.store(process);
        std::uint32_t asked = control.asked.load();
        if (control.process.load() == process && control.ended.load() != asked)
            shared::record_end(rank.header(), control, asked);
    }

    int host_, children_;
    std::map<std::uint32_t, Rank> ranks_;
    std::map<pid_t, Place> places_;
};

// What the host program has not marked as its own alone must not stay open here: somebody may wait for its end.
void close_others() {
    if (syscall(SYS_close_range, shared::SERVER_SOCKET + 1, ~0u, 0) == 0) return;
    long most = sysconf(_SC_OPEN_MAX); // an old kernel, or a container that does not allow it
    for (int file = shared::SERVER_SOCKET + 1; file < std::min(most, 65536l); file++) close(file);
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "dpu-process is started by libdpu.so\n");
        return 2;
    }
    setsid(); // an interrupt from the keyboard is the host program's to handle
    prctl(PR_SET_NAME, "dpu-server");
    close_others();
    fcntl(shared::SERVER_SOCKET, F_SETFD, FD_CLOEXEC);
    Server(static_cast<pid_t>(std::atol(argv[1]))).run();
    return 0;
}
