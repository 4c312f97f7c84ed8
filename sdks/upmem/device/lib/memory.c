/* Blocks of memory in WRAM: by words of 8 or 4 bytes where both sides allow it, else by bytes. */
#include <stdint.h>
#include <string.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    uint32_t low = (uintptr_t)to | (uintptr_t)from;
    if ((low & 7) == 0)
        for (; bytes >= 8; bytes -= 8, in += 8, out += 8) *(uint64_t *)out = *(const uint64_t *)in;
    else if ((low & 3) == 0)
        for (; bytes >= 4; bytes -= 4, in += 4, out += 4) *(uint32_t *)out = *(const uint32_t *)in;
    for (; bytes; bytes--) *out++ = *in++;
    return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    if ((uintptr_t)to - (uintptr_t)from >= bytes) return memcpy(to, from, bytes);
    uint32_t low = (uintptr_t)to | (uintptr_t)from | bytes;
    if ((low & 7) == 0)
        for (; bytes; bytes -= 8) *(uint64_t *)(out + bytes - 8) = *(const uint64_t *)(in + bytes - 8);
    for (; bytes; bytes--) out[bytes - 1] = in[bytes - 1];
    return to;
}

void *memset(void *to, int byte, size_t bytes)
{
    uint8_t *out = to;
    uint64_t word = 0x0101010101010101 * (uint8_t)byte;
    for (; bytes && ((uintptr_t)out & 7); bytes--) *out++ = (uint8_t)byte;
    for (; bytes >= 8; bytes -= 8, out += 8) *(uint64_t *)out = word;
    for (; bytes; bytes--) *out++ = (uint8_t)byte;
    return to;
}
