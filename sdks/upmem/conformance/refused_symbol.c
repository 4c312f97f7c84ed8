/* A program that calls what nobody defines is refused by the linker, with the name. */
/* refused as: undefined_function -DNR_TASKLETS=1 -- nobody_defines_this */
#include <stdint.h>

extern uint32_t nobody_defines_this(void);

int main(void) {
    return (int)nobody_defines_this();
}
