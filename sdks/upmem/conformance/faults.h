/* The misdeeds that device_faults.c knows, by number; host_faults.c asks for one of them. */
#ifndef FAULTS_H
#define FAULTS_H

enum {
    NOTHING,
    MRAM_READ,
    MRAM_WRITE,
    WRAM_READ,
    WRAM_WRITE,
    MRAM_END,
    MRAM_NOWHERE,
    MRAM_SCALAR,
    MRAM_SCALAR_ODD,
    WRAM_ODD,
    UNLOCKED_BY_OTHER,
    STORE,
    LOAD,
    CALL,
    DEEP,
    WIDE,
    HEAP_FULL,
    LOCKED_TWICE,
    NEVER_GIVEN,
    NEVER_NOTIFIED,
    ENDLESS,
    DIVISION,
    HALF_WORDS,
    HALF_WORDS_LOCKED,
    HALF_WORDS_LATER,
    HALF_WORDS_ORDERED,
    BARRIER_TOO_FEW,
    BARRIER_TOO_MANY,
    BARRIER_ONE_MISSING,
};

#endif
