#ifndef _PTHREAD_H
#define _PTHREAD_H
typedef int pthread_once_t;
#define PTHREAD_ONCE_INIT 0
int pthread_once(pthread_once_t *once, void (*function)(void));
#endif
