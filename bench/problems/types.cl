// What the kernels of this folder begin with: numbers of type TYPE in memory; f32 in registers, or the type itself if it
// is f64 or an integer.

#define f32 1
#define f16 2
#define bf16 3
#define f64 4
#define i32 5
#define i8 6
#define i16 7
#if TYPE == f32 || TYPE > bf16
#if TYPE == f32
typedef float T;
#elif TYPE == f64
typedef double T;
#elif TYPE == i32
typedef int T;
#elif TYPE == i8
typedef char T;
#elif TYPE == i16
typedef short T;
#endif
#define LOAD(p) (*(p))
#define STORE(v, p) (*(p) = (v))
#define LOAD16(p) vload16(0, p)
#define STORE16(v, p) vstore16(v, 0, p)
#elif TYPE == f16
typedef half T;
#define LOAD(p) vload_half(0, p)
#define STORE(v, p) vstore_half(v, 0, p)
#define LOAD16(p) vload_half16(0, p)
#define STORE16(v, p) vstore_half16(v, 0, p)
#elif TYPE == bf16
typedef ushort T;
#define LOAD(p) as_float((uint)*(p) << 16)
#define LOAD16(p) as_float16(convert_uint16(vload16(0, p)) << 16)
// To the nearest number, ties to even; for numbers.
#define ROUND(bits) (((bits) + 0x7fff + ((bits) >> 16 & 1)) >> 16)
#define STORE(v, p) (*(p) = (ushort)ROUND(as_uint(v)))
#define STORE16(v, p) vstore16(convert_ushort16(ROUND(as_uint16(v))), 0, p)
#endif

float sum16(float16 v) {
    float8 a = v.lo + v.hi;
    float4 b = a.lo + a.hi;
    return b.x + b.y + b.z + b.w;
}

float max16(float16 v) {
    float8 a = fmax(v.lo, v.hi);
    float4 b = fmax(a.lo, a.hi);
    return fmax(fmax(b.x, b.y), fmax(b.z, b.w));
}

#define LOWER_LANES(a, b) (float16)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3, a.s4, b.s4, a.s5, b.s5, a.s6, b.s6, a.s7, b.s7)
#define UPPER_LANES(a, b) (float16)(a.s8, b.s8, a.s9, b.s9, a.sa, b.sa, a.sb, b.sb, a.sc, b.sc, a.sd, b.sd, a.se, b.se, a.sf, b.sf)

// Transpose a tile of 16 rows in registers: shuffling row i with row i + 8, four times.
void transpose16(float16 *v) {
    float16 w[16];
#pragma unroll
    for (int round = 0; round < 2; round++) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            w[2 * i] = LOWER_LANES(v[i], v[i + 8]);
            w[2 * i + 1] = UPPER_LANES(v[i], v[i + 8]);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) {
            v[2 * i] = LOWER_LANES(w[i], w[i + 8]);
            v[2 * i + 1] = UPPER_LANES(w[i], w[i + 8]);
        }
    }
}
