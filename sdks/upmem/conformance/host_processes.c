/* Every DPU is a process of its own: what happens when one is killed, or the host is. Of the emulator alone. */
#include "conformance.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { QUIET, PRINT, LOOP, FAULT };

/* State and parent of a process, if it is called `name`; otherwise 0. */
static char look(pid_t process, const char *name, pid_t *parent) {
    char path[64], called[64] = "", state = 0;
    int up = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0;
    const int got = fscanf(file, "%*d (%63[^)]) %c %d", called, &state, &up);
    fclose(file);
    *parent = up;
    return got == 3 && strcmp(called, name) == 0 ? state : 0;
}

/* The children of a process that are called `name` and are no zombies, at most `most` of them. */
static int children(pid_t of, const char *name, pid_t *found, int most) {
    int count = 0;
    DIR *all = opendir("/proc");
    for (const struct dirent *entry; (entry = readdir(all)) != NULL && count < most;) {
        pid_t parent;
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        const pid_t process = atoi(entry->d_name);
        const char state = look(process, name, &parent);
        if (state != 0 && state != 'Z' && parent == of) found[count++] = process;
    }
    closedir(all);
    return count;
}

/* Waits, at most ten seconds, until so many are there. */
static void expect_children(pid_t of, const char *name, int expected) {
    pid_t found[300];
    int count = 0;
    for (int tries = 0; tries < 1000; tries++) {
        count = children(of, name, found, 300);
        if (count == expected) return;
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    }
    FAIL("%d processes \"%s\", not %d", count, name, expected);
}

static pid_t server_of(pid_t host) {
    pid_t server = 0;
    expect_children(host, "dpu-server", 1);
    children(host, "dpu-server", &server, 1);
    return server;
}

/* DPUs that are busy for longer than any test takes. */
static struct dpu_set_t busy(uint32_t count) {
    const uint32_t task = LOOP, rounds = 1000 * 1000 * 1000;
    struct dpu_set_t set = conformance_dpus(count, "device_launch");
    OK(dpu_broadcast_to(set, "task", 0, &task, sizeof task, DPU_XFER_DEFAULT));
    OK(dpu_broadcast_to(set, "rounds", 0, &rounds, sizeof rounds, DPU_XFER_DEFAULT));
    OK(dpu_launch(set, DPU_ASYNCHRONOUS));
    return set;
}

STRICTER(a_freed_set_leaves_no_process, "has none: DPUs are hardware") {
    struct dpu_set_t set = conformance_dpus(70, "device_launch");
    const pid_t server = server_of(getpid());
    expect_children(server, "dpu", 70);
    OK(dpu_free(set));
    expect_children(server, "dpu", 0);
}

STRICTER(a_running_set_may_be_freed, "waits, or leaves the DPUs running") {
    struct dpu_set_t set = busy(4);
    const pid_t server = server_of(getpid());
    OK(dpu_free(set));
    expect_children(server, "dpu", 0);
}

STRICTER(a_killed_dpu_is_in_fault_and_the_others_are_not, "has no process that could be killed") {
    const uint32_t task = LOOP;
    const uint64_t rounds = 5 * 1000 * 1000;
    struct dpu_set_t set = conformance_dpus(3, "device_launch"), dpu;
    pid_t found[3];
    const pid_t server = server_of(getpid());
    expect_children(server, "dpu", 3);
    EXPECT_EQUAL(children(server, "dpu", found, 3), 3);
    OK(dpu_broadcast_to(set, "task", 0, &task, sizeof task, DPU_XFER_DEFAULT));
    OK(dpu_broadcast_to(set, "rounds", 0, &rounds, 4, DPU_XFER_DEFAULT));
    kill(found[1], SIGSTOP);
    OK(dpu_launch(set, DPU_ASYNCHRONOUS));
    kill(found[1], SIGKILL);
    conformance_hear();
    const dpu_error_t error = dpu_sync(set);
    char *said = conformance_heard();
    EXPECT_ERROR(error, DPU_ERR_DPU_FAULT);
    EXPECT_WORDS(said, "process died", "signal 9");
    free(said);
    uint32_t sum, right = 0;
    DPU_FOREACH(set, dpu) {
        OK(dpu_copy_from(dpu, "sum", 0, &sum, sizeof sum));
        right += sum == (uint32_t)(rounds * (rounds - 1) / 2);
    }
    EXPECT_EQUAL(right, 2);
    OK(dpu_load(set, conformance_program("device_launch"), NULL));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_free(set));
}

STRICTER(a_dpu_killed_between_launches_is_in_fault_at_the_next, "has no process that could be killed") {
    struct dpu_set_t set = conformance_dpus(2, "device_launch");
    pid_t found[2];
    const pid_t server = server_of(getpid());
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    EXPECT_EQUAL(children(server, "dpu", found, 2), 2);
    kill(found[0], SIGKILL);
    expect_children(server, "dpu", 1);
    EXPECT_ERROR(dpu_launch(set, DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
    OK(dpu_free(set));
}

STRICTER(when_the_server_is_killed_the_host_lives, "has no process that could be killed") {
    struct dpu_set_t set = busy(2);
    conformance_hear();
    kill(server_of(getpid()), SIGKILL);
    const dpu_error_t error = dpu_sync(set);
    char *said = conformance_heard();
    EXPECT_ERROR(error, DPU_ERR_DPU_FAULT);
    EXPECT_WORDS(said, "process died");
    free(said);
    OK(dpu_free(set));
    set = conformance_dpus(2, "device_launch");
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_free(set));
}

STRICTER(a_killed_host_takes_its_dpus_with_it, "stops them at the next allocation") {
    int pipe_ends[2];
    EXPECT(pipe(pipe_ends) == 0);
    const pid_t host = fork();
    if (host == 0) {
        busy(8);
        const pid_t server = server_of(getpid());
        expect_children(server, "dpu", 8);
        if (write(pipe_ends[1], &server, sizeof server) != sizeof server) _exit(1);
        pause();
    }
    pid_t server = 0, found[8], parent;
    EXPECT(read(pipe_ends[0], &server, sizeof server) == sizeof server);
    EXPECT_EQUAL(children(server, "dpu", found, 8), 8);
    kill(host, SIGKILL);
    EXPECT(waitpid(host, NULL, 0) == host);
    for (int tries = 0; tries < 1000; tries++) {
        int alive = look(server, "dpu-server", &parent) != 0 && look(server, "dpu-server", &parent) != 'Z';
        for (int i = 0; i < 8; i++) {
            const char state = look(found[i], "dpu", &parent);
            alive += state != 0 && state != 'Z';
        }
        if (alive == 0) return;
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    }
    FAIL("DPUs live on");
}

STRICTER(the_host_reaps_its_server, "has no process") {
    const pid_t host = fork();
    if (host == 0) {
        struct dpu_set_t set = conformance_dpus(2, "device_launch");
        OK(dpu_launch(set, DPU_SYNCHRONOUS));
        exit(server_of(getpid()) > 0 ? 0 : 1);
    }
    int status = 1;
    EXPECT(waitpid(host, &status, 0) == host);
    EXPECT_EQUAL(status, 0);
    pid_t found[1];
    EXPECT_EQUAL(children(getpid(), "dpu-server", found, 1), 0);
}
