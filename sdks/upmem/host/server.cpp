// Starts libexec/dpu-process, found beside this library, and talks to it.
#include "server.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <mutex>
#include <spawn.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report.h"

namespace {

std::mutex lock;
pid_t server = -1, owner = -1;
int connection = -1;

// The folder of libdpu.so's prefix, symbolic links followed.
std::string prefix() {
    Dl_info info;
    if (!dladdr(reinterpret_cast<void *>(&ask_server), &info) || !info.dli_fname) return "";
    char *real = realpath(info.dli_fname, nullptr);
    std::string path = real ? real : "";
    std::free(real);
    for (int level = 0; level < 2 && !path.empty(); level++) path.resize(path.rfind('/'));
    return path;
}

bool start() {
    std::string program = prefix() + "/libexec/dpu-process";
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        refuse(DPU_ERR_SYSTEM, "no socket for %s: %s", program.c_str(), std::strerror(errno));
        return false;
    }
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    // The other end must not be number 3 when 3 is replaced: move it out of the way.
    int other = fcntl(pair[1], F_DUPFD_CLOEXEC, shared::SERVER_SOCKET + 1);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, other, shared::SERVER_SOCKET);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::string host = std::to_string(getpid());
    char *arguments[] = {program.data(), host.data(), nullptr}, *environment[] = {nullptr};
    int error = posix_spawn(&server, program.c_str(), &files, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    close(pair[1]);
    if (other >= 0) close(other);
    if (error != 0) {
        close(pair[0]);
        server = -1;
        refuse(DPU_ERR_SYSTEM, "cannot start %s: %s", program.c_str(), std::strerror(error));
        return false;
    }
    connection = pair[0];
    owner = getpid();
    return true;
}

bool died() {
    if (server < 0) return true;
    pid_t ended = waitpid(server, nullptr, WNOHANG);
    // Where the program ignores its children, or this is a child of it, nobody can be waited for.
    if (ended < 0 && errno == ECHILD) return kill(server, 0) != 0;
    return ended == server;
}

void forget() {
    if (connection >= 0) close(connection);
    connection = -1;
    server = -1;
}

// Ends the server with the program, and leaves no zombie where the program is the init of a container.
struct AtExit {
    ~AtExit() {
        if (server < 0 || owner != getpid()) return;
        shutdown(connection, SHUT_RDWR);
        waitpid(server, nullptr, 0);
        forget();
    }
} at_exit;

} // namespace

bool server_is_ours() {
    std::lock_guard guard(lock);
    return owner == getpid();
}

bool server_died() {
    std::lock_guard guard(lock);
    if (server >= 0 && !died()) return false;
    forget();
    return true;
}

bool ask_server(const shared::Message &message, int file) {
    std::lock_guard guard(lock);
    // Ranks are known only to the server that they were added to.
    if (message.request == shared::Request::add_rank && (server < 0 || died())) {
        forget();
        if (!start()) return false;
    }
    iovec data = {const_cast<shared::Message *>(&message), sizeof(message)};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    msghdr header = {};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    if (file >= 0) {
        header.msg_control = space;
        header.msg_controllen = sizeof(space);
        cmsghdr *extra = CMSG_FIRSTHDR(&header);
        extra->cmsg_level = SOL_SOCKET;
        extra->cmsg_type = SCM_RIGHTS;
        extra->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(extra), &file, sizeof(int));
    }
    ssize_t sent;
    do sent = sendmsg(connection, &header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent == static_cast<ssize_t>(sizeof(message))) return true;
    refuse(DPU_ERR_DRIVER, "the process that runs DPUs has died: %s", std::strerror(errno));
    return false;
}
