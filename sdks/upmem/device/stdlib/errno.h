/* Error numbers, one errno for each tasklet. */
#ifndef FOUNDRY_ERRNO_H
#define FOUNDRY_ERRNO_H

#define EINVAL 22
#define ENOMEM 12
#define ERANGE 34
#define ENODEV 19

extern int __foundry_errno[];
#define errno (__foundry_errno[__builtin_dpu_tid()])

#endif
