/* Numbers from text, ends of programs, errno. */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <foundry_service.h>
#include <stdlib.h>

int __foundry_errno[FOUNDRY_DPU_MAX_TASKLETS];

int abs(int value) { return value < 0 ? -value : value; }

long labs(long value) { return value < 0 ? -value : value; }

long long llabs(long long value) { return value < 0 ? -value : value; }

long atol(const char *string)
{
    long value = 0;
    while (isspace(*string)) string++;
    char sign = *string;
    if (sign == '-' || sign == '+') string++;
    for (; isdigit(*string); string++) value = 10 * value + (*string - '0');
    return sign == '-' ? -value : value;
}

int atoi(const char *string) { return (int)atol(string); }

void exit(int status)
{
    (void)status; /* nobody asks for it */
    __foundry_service(FOUNDRY_DPU_OP_EXIT, 0, 0, 0);
    __builtin_unreachable();
}

void abort(void) { __foundry_fault(FOUNDRY_DPU_REASON_ABORT, 0, 0); }

void __foundry_assert(const char *message) { __foundry_fault(FOUNDRY_DPU_REASON_ASSERT, (uint32_t)message, 0); }
