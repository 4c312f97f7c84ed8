/* The DPU's instructions as macros, with the SDK's names: the first operand is the variable that gets the result.
 *
 * They are written in C; the compiler knows which of these expressions are one instruction. */
#ifndef FOUNDRY_BUILT_INS_H
#define FOUNDRY_BUILT_INS_H

#include <stdint.h>

#define __FOUNDRY_LOW(x) ((x)&0xff)
#define __FOUNDRY_HIGH(x) ((x) >> 8 & 0xff)

#define __builtin_add_rrr(rc, ra, rb) ((rc) = ((ra) + (rb)))
#define __builtin_add_rri(rc, ra, rb) ((rc) = ((ra) + (rb)))
#define __builtin_sub_rrr(rc, ra, rb) ((rc) = ((ra) - (rb)))
#define __builtin_sub_rri(rc, ra, rb) ((rc) = ((ra) - (rb)))
#define __builtin_and_rrr(rc, ra, rb) ((rc) = ((ra) & (rb)))
#define __builtin_and_rri(rc, ra, rb) ((rc) = ((ra) & (rb)))
#define __builtin_or_rrr(rc, ra, rb) ((rc) = ((ra) | (rb)))
#define __builtin_or_rri(rc, ra, rb) ((rc) = ((ra) | (rb)))
#define __builtin_xor_rrr(rc, ra, rb) ((rc) = ((ra) ^ (rb)))
#define __builtin_xor_rri(rc, ra, rb) ((rc) = ((ra) ^ (rb)))
#define __builtin_nand_rrr(rc, ra, rb) ((rc) = (~((ra) & (rb))))
#define __builtin_nand_rri(rc, ra, rb) ((rc) = (~((ra) & (rb))))
#define __builtin_nor_rrr(rc, ra, rb) ((rc) = (~((ra) | (rb))))
#define __builtin_nor_rri(rc, ra, rb) ((rc) = (~((ra) | (rb))))
#define __builtin_nxor_rrr(rc, ra, rb) ((rc) = (~((ra) ^ (rb))))
#define __builtin_nxor_rri(rc, ra, rb) ((rc) = (~((ra) ^ (rb))))
#define __builtin_andn_rrr(rc, ra, rb) ((rc) = (~(ra) & (rb)))
#define __builtin_andn_rri(rc, ra, rb) ((rc) = (~(ra) & (rb)))
#define __builtin_orn_rrr(rc, ra, rb) ((rc) = (~(ra) | (rb)))
#define __builtin_orn_rri(rc, ra, rb) ((rc) = (~(ra) | (rb)))
#define __builtin_lsl_rrr(rc, ra, rb) ((rc) = ((uint32_t)(ra) << ((rb)&31)))
#define __builtin_lsl_rri(rc, ra, rb) ((rc) = ((uint32_t)(ra) << ((rb)&31)))
#define __builtin_lsr_rrr(rc, ra, rb) ((rc) = ((uint32_t)(ra) >> ((rb)&31)))
#define __builtin_lsr_rri(rc, ra, rb) ((rc) = ((uint32_t)(ra) >> ((rb)&31)))
#define __builtin_asr_rrr(rc, ra, rb) ((rc) = ((int32_t)(ra) >> ((rb)&31)))
#define __builtin_asr_rri(rc, ra, rb) ((rc) = ((int32_t)(ra) >> ((rb)&31)))
#define __builtin_rol_rrr(rc, ra, rb) ((rc) = (__builtin_rotateleft32(ra, rb)))
#define __builtin_rol_rri(rc, ra, rb) ((rc) = (__builtin_rotateleft32(ra, rb)))
#define __builtin_ror_rrr(rc, ra, rb) ((rc) = (__builtin_rotateright32(ra, rb)))
#define __builtin_ror_rri(rc, ra, rb) ((rc) = (__builtin_rotateright32(ra, rb)))

#define __builtin_lsl_add_rrri(rc, ra, rb, shift) ((rc) = ((ra) + ((uint32_t)(rb) << (shift))))
#define __builtin_lsr_add_rrri(rc, ra, rb, shift) ((rc) = ((ra) + ((uint32_t)(rb) >> (shift))))
#define __builtin_lsl_sub_rrri(rc, ra, rb, shift) ((rc) = ((ra) - ((uint32_t)(rb) << (shift))))
#define __builtin_rol_add_rrri(rc, ra, rb, shift) ((rc) = ((ra) + __builtin_rotateleft32(rb, shift)))

#define __builtin_cao_rr(rc, ra) ((rc) = (__builtin_popcount(ra)))
#define __builtin_clz_rr(rc, ra) ((rc) = ((ra) ? __builtin_clz(ra) : 32))
#define __builtin_clo_rr(rc, ra) ((rc) = (~(ra) ? __builtin_clz(~(ra)) : 32))
#define __builtin_cls_rr(rc, ra) ((rc) = (__builtin_clrsb(ra)))
#define __builtin_extsb_rr(rc, ra) ((rc) = ((int32_t)(int8_t)(ra)))
#define __builtin_extub_rr(rc, ra) ((rc) = ((uint32_t)(uint8_t)(ra)))
#define __builtin_extsh_rr(rc, ra) ((rc) = ((int32_t)(int16_t)(ra)))
#define __builtin_extuh_rr(rc, ra) ((rc) = ((uint32_t)(uint16_t)(ra)))

/* Products of bytes: s and u say signed or not, l and h the lower or the higher byte of 16 bits. */
#define __builtin_mul_sl_sl_rrr(rc, ra, rb)                                                                            \
    ((rc) = (int32_t)(int8_t)__FOUNDRY_LOW(ra) * (int32_t)(int8_t)__FOUNDRY_LOW(rb))
#define __builtin_mul_sl_sh_rrr(rc, ra, rb)                                                                            \
    ((rc) = (int32_t)(int8_t)__FOUNDRY_LOW(ra) * (int32_t)(int8_t)__FOUNDRY_HIGH(rb))
#define __builtin_mul_sl_ul_rrr(rc, ra, rb)                                                                            \
    ((rc) = (int32_t)(int8_t)__FOUNDRY_LOW(ra) * (int32_t)(uint8_t)__FOUNDRY_LOW(rb))
#define __builtin_mul_sl_uh_rrr(rc, ra, rb)                                                                            \
    ((rc) = (int32_t)(int8_t)__FOUNDRY_LOW(ra) * (int32_t)(uint8_t)__FOUNDRY_HIGH(rb))
#define __builtin_mul_sh_sl_rrr(rc, ra, rb)                                                                            \
    ((rc) = (int32_t)(int8_t)__FOUNDRY_HIGH(ra) * (int32_t)(int8_t)__FOUNDRY_LOW(rb))
#define __builtin_mul_sh_sh_rrr(rc, ra, rb)                                                                            \
    ((rc) = (int32_t)(int8_t)__FOUNDRY_HIGH(ra) * (int32_t)(int8_t)__FOUNDRY_HIGH(rb))
#define __builtin_mul_sh_ul_rrr(rc, ra, rb)                                                                            \
    ((rc) = (int32_t)(int8_t)__FOUNDRY_HIGH(ra) * (int32_t)(uint8_t)__FOUNDRY_LOW(rb))
#define __builtin_mul_sh_uh_rrr(rc, ra, rb)                                                                            \
    ((rc) = (int32_t)(int8_t)__FOUNDRY_HIGH(ra) * (int32_t)(uint8_t)__FOUNDRY_HIGH(rb))
#define __builtin_mul_ul_ul_rrr(rc, ra, rb)                                                                            \
    ((rc) = (int32_t)(uint8_t)__FOUNDRY_LOW(ra) * (int32_t)(uint8_t)__FOUNDRY_LOW(rb))
#define __builtin_mul_ul_uh_rrr(rc, ra, rb)                                                                            \
    ((rc) = (int32_t)(uint8_t)__FOUNDRY_LOW(ra) * (int32_t)(uint8_t)__FOUNDRY_HIGH(rb))
#define __builtin_mul_uh_ul_rrr(rc, ra, rb)                                                                            \
    ((rc) = (int32_t)(uint8_t)__FOUNDRY_HIGH(ra) * (int32_t)(uint8_t)__FOUNDRY_LOW(rb))
#define __builtin_mul_uh_uh_rrr(rc, ra, rb)                                                                            \
    ((rc) = (int32_t)(uint8_t)__FOUNDRY_HIGH(ra) * (int32_t)(uint8_t)__FOUNDRY_HIGH(rb))

/* A 1 in each byte in which the operands agree. */
static inline uint32_t __foundry_cmpb4(uint32_t a, uint32_t b)
{
    uint32_t differ = a ^ b;
    uint32_t low = (differ & 0x7f7f7f7f) + 0x7f7f7f7f;
    return ~(low | differ) >> 7 & 0x01010101;
}
#define __builtin_cmpb4_rrr(rc, ra, rb) ((rc) = __foundry_cmpb4(ra, rb))

#endif
