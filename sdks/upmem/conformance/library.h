/* What device_library.c does on demand. */
#ifndef LIBRARY_H
#define LIBRARY_H

enum { BLOCKS, BUDDIES, MUTEX_POOL, VIRTUAL_MUTEXES, ATOMIC_BIT, ATOMIC_UPDATES, UNALIGNED, STRINGS, HALT, ASSERTION };

#endif
