int *__errno_location(void) __attribute__((const));
#define errno (*__errno_location())
