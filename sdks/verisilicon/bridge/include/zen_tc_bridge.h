/* The reference bridge to the tensor core (TC): which matrix products the TC computes, and the layout of its commands.
 *
 * This is Triton Foundry's own interface, for its reference SDK. The vendor's libZenTCBridge.so has another interface,
 * which is not public. Nothing here describes that interface or the vendor's commands.
 *
 * A command has 256 bytes: 64 unsigned 32-bit words, little-endian. Words that are not listed are zero.
 *
 *     word   byte  name           contents
 *     0      0     magic          ZEN_TC_MAGIC
 *     1      4     opcode         ZEN_TC_MATMUL: C += A B
 *     2      8     index          which of the kernel's commands this is, from 0
 *     4-6    16    grid           programs along x, y and z
 *     8-10   32    program        the program that the command is for, x, y and z; each less than the grid's
 *     12     48    m              rows of A and of C
 *     13     52    n              columns of B and of C
 *     14     56    k              columns of A, rows of B
 *     16     64    operand_type   type of A's and B's elements in memory, ZEN_TC_F32
 *     17     68    result_type    type of C's elements, in which products are summed up, ZEN_TC_F32
 *     20-21  80    a_strides      elements from one row of A to the next, from one column to the next
 *     22-23  88    b_strides      the same of B
 *     24-25  96    c_strides      the same of C
 *     63     252   checksum       the sum of words 0 to 62, modulo 2^32
 *
 * A command's life: zen_tc_encode writes what is known when a kernel is compiled (grid, program and checksum are zero
 * then). When the kernel is launched, each program gets a copy with grid, program and checksum filled in, as
 * zen_tc_place does it. Program (x, y, z) of a grid (gx, gy, gz) finds its copy at byte
 * 256 * (x + gx * (y + gy * z)) of the command buffer. The TC does not execute a command whose magic, opcode, index,
 * program or checksum is wrong.
 *
 * Order of summation: products are added to each element of C in the order of k. The device decides whether each
 * addition rounds once (fused) or twice.
 */
#ifndef ZEN_TC_BRIDGE_H
#define ZEN_TC_BRIDGE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ZEN_TC_COMMAND_BYTES 256
#define ZEN_TC_MAGIC 0x3143545Au /* "ZTC1" */
#define ZEN_TC_MATMUL 1u
#define ZEN_TC_F32 1u
/* The largest m, n and k. */
#define ZEN_TC_MAX_EXTENT 65536u

/* Of this interface and of the layout of commands. */
#define ZEN_TC_VERSION 1

/* Returns ZEN_TC_VERSION. */
uint32_t zen_tc_version(void);

/* C += A B. See the words of the same names. Strides are in elements. */
typedef struct zen_tc_matmul {
  uint32_t m, n, k;
  uint32_t operand_type, result_type;
  uint32_t a_strides[2], b_strides[2], c_strides[2];
} zen_tc_matmul;

/* Returns why the TC does not support this product, a text that lives as long as the library; NULL if it does.
 * It supports: extents from 1 to ZEN_TC_MAX_EXTENT; f32 operands and results; every element at an offset below 2^32 elements;
 * C in rows that follow each other without overlap, or in such columns. A and B may overlap themselves (strides of 0).
 */
const char *zen_tc_refuses(const zen_tc_matmul *matmul);

/* Writes a command with all but grid, program and checksum. Returns 0; or -1, with nothing written, if the TC refuses. */
int zen_tc_encode(const zen_tc_matmul *matmul, uint32_t index, uint8_t command[ZEN_TC_COMMAND_BYTES]);

/* The byte at which a field of the table above starts; -1 for a name that is not in it. */
int32_t zen_tc_field(const char *name);

/* Fills in grid, program and checksum, whatever they were. Returns 0; or -1, with nothing written, if the command's magic
 * is wrong or the program is not one of the grid.
 */
int zen_tc_place(uint8_t command[ZEN_TC_COMMAND_BYTES], const uint32_t grid[3], const uint32_t program[3]);

#ifdef __cplusplus
}
#endif

#endif
