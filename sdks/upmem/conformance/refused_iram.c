/* 24 KiB of IRAM: 4096 instructions in v1A, 3968 in v1B. The linker refuses what is longer. */
/* refused as: iram_v1a -DNR_TASKLETS=1 -mcpu=v1A -DLONG -- iram 4096 */
/* refused as: iram_v1b -DNR_TASKLETS=1 -mcpu=v1B -DLONG -- iram 3968 */
/* taken as: iram_fits -DNR_TASKLETS=1 */
#include <attributes.h>
#include <stdint.h>

__host volatile uint32_t words[8];

#define ONCE(n) words[(n) & 7] += words[((n) >> 3) & 7] ^ (0x12345 * (n));
#define EIGHT(n) ONCE(n) ONCE(n + 1) ONCE(n + 2) ONCE(n + 3) ONCE(n + 4) ONCE(n + 5) ONCE(n + 6) ONCE(n + 7)
#define SIXTY_FOUR(n)                                                                                                  \
    EIGHT(n) EIGHT(n + 8) EIGHT(n + 16) EIGHT(n + 24) EIGHT(n + 32) EIGHT(n + 40) EIGHT(n + 48) EIGHT(n + 56)

int main(void) {
    SIXTY_FOUR(0)
    SIXTY_FOUR(64)
#ifdef LONG
    SIXTY_FOUR(128)
    SIXTY_FOUR(192)
    SIXTY_FOUR(256)
    SIXTY_FOUR(320)
    SIXTY_FOUR(384)
    SIXTY_FOUR(448)
    SIXTY_FOUR(512)
    SIXTY_FOUR(576)
    SIXTY_FOUR(640)
    SIXTY_FOUR(704)
    SIXTY_FOUR(768)
    SIXTY_FOUR(832)
    SIXTY_FOUR(896)
    SIXTY_FOUR(960)
    SIXTY_FOUR(1024)
    SIXTY_FOUR(1088)
    SIXTY_FOUR(1152)
    SIXTY_FOUR(1216)
#endif
    return 0;
}
