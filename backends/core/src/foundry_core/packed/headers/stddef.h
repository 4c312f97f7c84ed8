/* These headers declare what the sources of a packed folder need of glibc on x86-64, and nothing else. The image of spirv has
 * a compiler, which PoCL brings, and no headers; a user builds with the headers of the machine. */
#ifndef _STDDEF_H
#define _STDDEF_H
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
#define NULL ((void *)0)
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
