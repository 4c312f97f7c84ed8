/* What the tasklets of device_races.c do, by number; host_races.c asks for one of them. The same done rightly has the
   next number. */
#ifndef RACES_H
#define RACES_H

enum {
    COUNT,
    COUNT_LOCKED,
    COUNT_VOLATILE,
    COUNT_SEMAPHORE,
    COUNT_ON_BOTH_WAYS,
    MISSING_BARRIER,
    WITH_BARRIER,
    MRAM_COUNT,
    MRAM_COUNT_LOCKED,
    WIDE_AND_NARROW,
    WIDE_AND_NARROW_HANDSHAKE,
    NARROW_AND_WIDE,
    MRAM_READ,
    MRAM_READ_HANDSHAKE,
    MRAM_LOAD,
    MRAM_LOAD_HANDSHAKE,
    MRAM_FORWARD,
    MRAM_FORWARD_HANDSHAKE,
    CHANGED_AGAIN,
    CHANGED_AGAIN_BARRIER,
    BYTE_CHANGED_AGAIN,
    BYTE_CHANGED_AGAIN_BARRIER,
    ACROSS_PAGES,
    ACROSS_PAGES_HANDSHAKE,
    COPIES,
    COPIES_LOCKED,
    /* Right in themselves. */
    NEIGHBOURS,
    SAME_VALUE,
    FLAG,
    TURNS,
    PART_BARRIER,
    NO_BASE,
    ALLOCATIONS,
    OVERREAD,
    UNUSED,
    OTHER_BYTES,
    POLLED,
    EARLY_READ,
    UNROLLED,
};

#endif
