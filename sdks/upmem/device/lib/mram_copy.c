/* Copies from or to MRAM that a C program writes as assignments, of any address and length.
 *
 * Whole aligned words go by DMA of up to 2048 bytes, directly if the WRAM side allows it, else through a buffer. Single
 * bytes in MRAM are written as C would write them: read-modify-write of a word, for which two tasklets must not share
 * it. */
#include <mram.h>
#include <stdint.h>
#include <string.h>

enum { LARGEST = 2048, BUFFER = 64 };

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

void __foundry_mram_copy_in(void *to, const __mram_ptr void *from, uint32_t bytes)
{
    uint8_t *out = to;
    uint32_t in = (uint32_t)from;
    if ((((uint32_t)out | in) & 7) == 0)
        for (; bytes >= 8;) {
            uint32_t piece = least(bytes & ~7u, LARGEST);
            mram_read((const __mram_ptr void *)in, out, piece);
            in += piece, out += piece, bytes -= piece;
        }
    __dma_aligned uint8_t buffer[BUFFER];
    while (bytes) {
        uint32_t before = in & 7, piece = least(bytes, BUFFER - before);
        mram_read((const __mram_ptr void *)(in - before), buffer, (before + piece + 7) & ~7u);
        memcpy(out, buffer + before, piece);
        in += piece, out += piece, bytes -= piece;
    }
}

void __foundry_mram_copy_out(__mram_ptr void *to, const void *from, uint32_t bytes)
{
    uint32_t out = (uint32_t)to;
    const uint8_t *in = from;
    for (; bytes && (out & 7); bytes--) *(__mram_ptr uint8_t *)out++ = *in++;
    __dma_aligned uint8_t buffer[BUFFER];
    while (bytes >= 8) {
        uint32_t direct = ((uint32_t)in & 7) == 0, piece = least(bytes & ~7u, direct ? LARGEST : BUFFER);
        if (!direct) memcpy(buffer, in, piece);
        mram_write(direct ? in : buffer, (__mram_ptr void *)out, piece);
        in += piece, out += piece, bytes -= piece;
    }
    for (; bytes; bytes--) *(__mram_ptr uint8_t *)out++ = *in++;
}

void __foundry_mram_copy(__mram_ptr void *to, const __mram_ptr void *from, uint32_t bytes)
{
    __dma_aligned uint8_t buffer[BUFFER];
    uint32_t backwards = (uint32_t)to - (uint32_t)from < bytes ? bytes : 0;
    for (uint32_t done = 0; done < bytes;) {
        uint32_t piece = least(bytes - done, BUFFER);
        uint32_t at = backwards ? bytes - done - piece : done;
        __foundry_mram_copy_in(buffer, (const __mram_ptr uint8_t *)from + at, piece);
        __foundry_mram_copy_out((__mram_ptr uint8_t *)to + at, buffer, piece);
        done += piece;
    }
}

void __foundry_mram_fill(__mram_ptr void *to, uint32_t byte, uint32_t bytes)
{
    __dma_aligned uint8_t buffer[BUFFER];
    memset(buffer, (int)byte, BUFFER);
    for (uint32_t done = 0; done < bytes;) {
        uint32_t piece = least(bytes - done, BUFFER);
        __foundry_mram_copy_out((__mram_ptr uint8_t *)to + done, buffer, piece);
        done += piece;
    }
}
