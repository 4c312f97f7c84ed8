#ifndef _PTHREAD_H
#define _PTHREAD_H
#include <time.h>
typedef int pthread_once_t;
typedef unsigned long pthread_t;
typedef union {
    char bytes[40];
    long aligned;
} pthread_mutex_t;
typedef union {
    char bytes[48];
    long long aligned;
} pthread_cond_t;
typedef union {
    char bytes[4];
    int aligned;
} pthread_condattr_t;
typedef struct pthread_attr pthread_attr_t;
typedef struct pthread_mutexattr pthread_mutexattr_t;
#define PTHREAD_ONCE_INIT 0
#define PTHREAD_MUTEX_INITIALIZER {{0}}
int pthread_once(pthread_once_t *once, void (*function)(void));
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with);
int pthread_join(pthread_t thread, void **result);
int pthread_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));
int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *how);
int pthread_mutex_lock(pthread_mutex_t *mutex);
int pthread_mutex_unlock(pthread_mutex_t *mutex);
int pthread_condattr_init(pthread_condattr_t *how);
int pthread_condattr_setclock(pthread_condattr_t *how, int clock);
int pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *how);
int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until);
int pthread_cond_broadcast(pthread_cond_t *condition);
#endif
