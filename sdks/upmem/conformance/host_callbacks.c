/* dpu_callback: which calls there are, their order with transfers and launches, their errors. */
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "conformance.h"

enum { RANK = 64, LOOP = 2, FAULT = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint32_t calls, rank_ids[4], dpus[4], ranks[4];
    bool on_callers_thread;
    pthread_t caller;
} seen;
static sem_t let_go, has_begun;

/* Of two ranks. */
static struct dpu_set_t dpus(void) {
    memset(&seen, 0x5a, sizeof seen);
    seen.calls = 0;
    seen.on_callers_thread = false;
    seen.caller = pthread_self();
    sem_init(&let_go, 0, 0);
    sem_init(&has_begun, 0, 0);
    return conformance_dpus(RANK + 6, "device_launch");
}

static dpu_error_t note(struct dpu_set_t set, uint32_t rank_id, void *args) {
    pthread_mutex_lock(&lock);
    const uint32_t call = seen.calls++ % 4;
    seen.rank_ids[call] = rank_id;
    seen.on_callers_thread |= pthread_equal(pthread_self(), seen.caller);
    dpu_error_t error = dpu_get_nr_dpus(set, &seen.dpus[call]);
    if (error == DPU_OK) error = dpu_get_nr_ranks(set, &seen.ranks[call]);
    pthread_mutex_unlock(&lock);
    return args ? *(const dpu_error_t *)args : error;
}

static dpu_callback_flags_t flags(unsigned one, unsigned other) { return (dpu_callback_flags_t)(one | other); }

static void expect_a_call_for_each_rank(void) {
    EXPECT_EQUAL(seen.calls, 2);
    const uint32_t second = seen.rank_ids[0] == 0;
    EXPECT_EQUAL(seen.rank_ids[!second], 0);
    EXPECT_EQUAL(seen.rank_ids[second], 1);
    EXPECT_EQUAL(seen.dpus[!second], RANK);
    EXPECT_EQUAL(seen.dpus[second], 6);
    EXPECT(!seen.on_callers_thread);
}

CONFORMS(a_callback_is_called_for_each_rank, "DPU_CALLBACK_DEFAULT: once per rank with its index, and waited for") {
    struct dpu_set_t set = dpus();
    OK(dpu_callback(set, note, NULL, DPU_CALLBACK_DEFAULT));
    expect_a_call_for_each_rank();
    OK(dpu_free(set));
}

CONFORMS(an_asynchronous_callback_is_called_for_each_rank, "DPU_CALLBACK_ASYNC: queued; dpu_sync waits for it") {
    struct dpu_set_t set = dpus();
    OK(dpu_callback(set, note, NULL, DPU_CALLBACK_ASYNC));
    OK(dpu_sync(set));
    expect_a_call_for_each_rank();
    OK(dpu_free(set));
}

CONFORMS(a_single_call_has_the_whole_set, "DPU_CALLBACK_SINGLE_CALL, each way") {
    const dpu_callback_flags_t ways[] = {DPU_CALLBACK_DEFAULT, DPU_CALLBACK_ASYNC,
                                         flags(DPU_CALLBACK_ASYNC, DPU_CALLBACK_NONBLOCKING)};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct dpu_set_t set = dpus();
        OK(dpu_callback(set, note, NULL, flags(ways[i], DPU_CALLBACK_SINGLE_CALL)));
        OK(dpu_sync(set));
        OK(dpu_free(set));
        EXPECT_EQUAL(seen.calls, 1);
        EXPECT_EQUAL(seen.ranks[0], 2);
        EXPECT_EQUAL(seen.dpus[0], RANK + 6);
    }
}

CONFORMS(a_callback_of_one_dpu_has_that_dpu, "a set of one DPU: one call with it") {
    struct dpu_set_t set = dpus();
    OK(dpu_callback(conformance_first(set), note, NULL, DPU_CALLBACK_ASYNC));
    OK(dpu_sync(set));
    EXPECT_EQUAL(seen.calls, 1);
    EXPECT_EQUAL(seen.dpus[0], 1);
    OK(dpu_free(set));
}

CONFORMS(a_synchronous_callback_cannot_be_nonblocking, "NONBLOCKING_SYNC_CALLBACK") {
    struct dpu_set_t set = dpus();
    EXPECT_ERROR(dpu_callback(set, note, NULL, DPU_CALLBACK_NONBLOCKING), DPU_ERR_NONBLOCKING_SYNC_CALLBACK);
    EXPECT_EQUAL(seen.calls, 0);
    OK(dpu_free(set));
}

/* What a callback does with its own rank: the sum of the launch before it becomes the number of rounds of the next. */
static dpu_error_t chain(struct dpu_set_t set, uint32_t rank_id, void *args) {
    struct dpu_set_t dpu;
    uint32_t sum = 0;
    (void)rank_id;
    (void)args;
    DPU_FOREACH(set, dpu) {
        dpu_error_t error = dpu_copy_from(dpu, "sum", 0, &sum, sizeof sum);
        if (error == DPU_OK) error = dpu_copy_to(dpu, "rounds", 0, &sum, sizeof sum);
        if (error != DPU_OK) return error;
    }
    return DPU_OK;
}

CONFORMS(callbacks_keep_their_place_between_launches_and_transfers, "one queue for transfers, launches and callbacks") {
    const unsigned ways[] = {0, DPU_CALLBACK_SINGLE_CALL};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct dpu_set_t set = dpus(), dpu;
        uint32_t task = LOOP, rounds = 50, index, sums[RANK + 6];
        memset(sums, 0x5a, sizeof sums);
        OK(dpu_broadcast_to(set, "task", 0, &task, sizeof task, DPU_XFER_ASYNC));
        OK(dpu_broadcast_to(set, "rounds", 0, &rounds, sizeof rounds, DPU_XFER_ASYNC));
        OK(dpu_launch(set, DPU_ASYNCHRONOUS));
        OK(dpu_callback(set, chain, NULL, flags(DPU_CALLBACK_ASYNC, ways[i])));
        OK(dpu_launch(set, DPU_ASYNCHRONOUS));
        DPU_FOREACH(set, dpu, index) OK(dpu_prepare_xfer(dpu, &sums[index]));
        OK(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "sum", 0, sizeof *sums, DPU_XFER_ASYNC));
        OK(dpu_sync(set));
        for (index = 0; index < RANK + 6; index++) EXPECT_EQUAL(sums[index], 1225 + 1225 * 1224 / 2);
        OK(dpu_free(set));
    }
}

static dpu_error_t launch_again(struct dpu_set_t set, uint32_t rank_id, void *args) {
    (void)rank_id;
    (void)args;
    return dpu_launch(set, DPU_SYNCHRONOUS);
}

CONFORMS(a_callback_may_launch_its_rank, "synchronous calls of a callback happen at its place in the queue") {
    struct dpu_set_t set = dpus(), dpu;
    OK(dpu_launch(set, DPU_ASYNCHRONOUS));
    OK(dpu_callback(set, launch_again, NULL, DPU_CALLBACK_ASYNC));
    OK(dpu_launch(set, DPU_ASYNCHRONOUS));
    OK(dpu_callback(set, launch_again, NULL, DPU_CALLBACK_DEFAULT));
    DPU_FOREACH(set, dpu) {
        uint32_t launches = 0;
        OK(dpu_copy_from(dpu, "launches", 0, &launches, sizeof launches));
        EXPECT_EQUAL(launches, 4);
    }
    OK(dpu_free(set));
}

static uint32_t apart;

static dpu_error_t transfer(struct dpu_set_t set, uint32_t rank_id, void *args) {
    uint32_t *task = args;
    struct dpu_set_t dpu = conformance_first(set);
    (void)rank_id;
    dpu_error_t error = dpu_prepare_xfer(dpu, task);
    return error ? error : dpu_push_xfer(set, DPU_XFER_TO_DPU, "rounds", 0, sizeof *task, DPU_XFER_DEFAULT);
}

CONFORMS(a_callback_prepares_its_own_transfers, "the buffers of dpu_prepare_xfer are a callback's own") {
    struct dpu_set_t set = dpus(), first = conformance_first(set);
    uint32_t rounds = 17, task = 0, got = 99;
    OK(dpu_prepare_xfer(first, &apart));
    apart = LOOP;
    OK(dpu_callback(set, transfer, &rounds, DPU_CALLBACK_SINGLE_CALL));
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "task", 0, sizeof task, DPU_XFER_DEFAULT));
    OK(dpu_copy_from(first, "rounds", 0, &got, sizeof got));
    OK(dpu_copy_from(first, "task", 0, &task, sizeof task));
    EXPECT_EQUAL(got, 17);
    EXPECT_EQUAL(task, LOOP);
    OK(dpu_free(set));
}

static dpu_error_t hold(struct dpu_set_t set, uint32_t rank_id, void *args) {
    (void)set;
    (void)rank_id;
    (void)args;
    sem_post(&has_begun);
    sem_wait(&let_go);
    pthread_mutex_lock(&lock);
    seen.calls++;
    pthread_mutex_unlock(&lock);
    return DPU_OK;
}

CONFORMS(a_callback_needs_nobody_to_wait_for_it, "a thread of the library calls it after the launch before it") {
    struct dpu_set_t set = dpus();
    OK(dpu_launch(set, DPU_ASYNCHRONOUS));
    OK(dpu_callback(set, hold, NULL, flags(DPU_CALLBACK_ASYNC, DPU_CALLBACK_SINGLE_CALL)));
    sem_wait(&has_begun);
    /* The queue takes more while the callback is at work, and dpu_status says that it is. */
    OK(dpu_launch(set, DPU_ASYNCHRONOUS));
    bool done = true;
    OK(dpu_status(set, &done, NULL));
    EXPECT(!done);
    EXPECT_EQUAL(seen.calls, 0);
    sem_post(&let_go);
    OK(dpu_sync(set));
    EXPECT_EQUAL(seen.calls, 1);
    OK(dpu_free(set));
}

CONFORMS(a_nonblocking_callback_holds_nothing_up, "the queues go on while it runs; dpu_free waits for its end") {
    struct dpu_set_t set = dpus(), dpu;
    OK(dpu_callback(set, hold, NULL, flags(DPU_CALLBACK_ASYNC, DPU_CALLBACK_NONBLOCKING)));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_FOREACH(set, dpu) {
        uint32_t launches = 0;
        OK(dpu_copy_from(dpu, "launches", 0, &launches, sizeof launches));
        EXPECT_EQUAL(launches, 1);
    }
    OK(dpu_sync(set));
    EXPECT_EQUAL(seen.calls, 0);
    sem_post(&let_go);
    sem_post(&let_go);
    OK(dpu_free(set));
    EXPECT_EQUAL(seen.calls, 2);
}

CONFORMS(the_error_of_a_callback_is_returned, "by dpu_callback, or if asynchronous by dpu_sync, once") {
    dpu_error_t error = DPU_ERR_TIMEOUT;
    struct dpu_set_t set = dpus();
    EXPECT_ERROR(dpu_callback(set, note, &error, DPU_CALLBACK_DEFAULT), DPU_ERR_TIMEOUT);
    OK(dpu_sync(set));
    OK(dpu_callback(set, note, &error, DPU_CALLBACK_ASYNC));
    EXPECT_ERROR(conformance_plain(dpu_sync(set)), DPU_ERR_TIMEOUT);
    OK(dpu_sync(set));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_free(set));
}

CONFORMS(an_error_drops_what_waits_in_the_queue, "the queue of the rank is emptied; since 2023") {
    dpu_error_t error = DPU_ERR_TIMEOUT;
    struct dpu_set_t set = dpus(), first = conformance_first(set);
    uint32_t launches = 99;
    OK(dpu_callback(set, hold, NULL, DPU_CALLBACK_ASYNC));
    OK(dpu_callback(set, note, &error, DPU_CALLBACK_ASYNC));
    OK(dpu_launch(set, DPU_ASYNCHRONOUS));
    OK(dpu_callback(set, note, NULL, flags(DPU_CALLBACK_ASYNC, DPU_CALLBACK_SINGLE_CALL)));
    sem_post(&let_go);
    sem_post(&let_go);
    EXPECT_ERROR(conformance_plain(dpu_sync(set)), DPU_ERR_TIMEOUT);
    OK(dpu_copy_from(first, "launches", 0, &launches, sizeof launches));
    EXPECT_EQUAL(launches, 0);
    OK(dpu_free(set));
    EXPECT_EQUAL(seen.calls, 4);
}

CONFORMS(a_callback_behind_a_fault_is_not_called, "a launch in fault empties the queue") {
    struct dpu_set_t set = dpus();
    uint32_t task = FAULT;
    OK(dpu_copy_to(set, "task", 0, &task, sizeof task));
    conformance_hear();
    OK(dpu_launch(set, DPU_ASYNCHRONOUS));
    OK(dpu_callback(set, note, NULL, DPU_CALLBACK_ASYNC));
    EXPECT_ERROR(conformance_plain(dpu_sync(set)), DPU_ERR_DPU_FAULT);
    free(conformance_heard());
    OK(dpu_free(set));
    EXPECT_EQUAL(seen.calls, 0);
}

static dpu_error_t wait_for_itself(struct dpu_set_t set, uint32_t rank_id, void *args) {
    (void)rank_id;
    *(dpu_error_t *)args = dpu_callback(set, note, NULL, DPU_CALLBACK_DEFAULT);
    return DPU_OK;
}

static dpu_error_t release(struct dpu_set_t set, uint32_t rank_id, void *args) {
    (void)rank_id;
    *(dpu_error_t *)args = dpu_free(set);
    return DPU_OK;
}

STRICTER(a_callback_does_not_wait_for_itself, "a callback that waits for a callback, or frees its DPUs, never ends") {
    struct dpu_set_t set = dpus();
    dpu_error_t error = DPU_OK;
    OK(dpu_callback(set, wait_for_itself, &error, DPU_CALLBACK_SINGLE_CALL));
    EXPECT_ERROR(error, DPU_ERR_INTERNAL);
    error = DPU_OK;
    OK(dpu_callback(set, release, &error, DPU_CALLBACK_SINGLE_CALL));
    EXPECT_ERROR(error, DPU_ERR_INTERNAL);
    OK(dpu_free(set));
}
