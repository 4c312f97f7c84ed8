// Attention as in "FlashAttention-2", for a CPU: a work-item has 32 queries of a head, and goes through the keys in blocks
// of 32, which it transposes once for all its queries. Products are of ROWS queries by 32 numbers in registers: 2 ROWS
// vectors of 16.

#define QUERIES 32
#define KEYS 32

kernel void attention(global const T *restrict q, global const T *restrict k, global const T *restrict v,
                      global T *restrict out, float scale) {
    int first = get_group_id(0) % (LENGTH / QUERIES) * QUERIES;
    size_t head = get_group_id(0) / (LENGTH / QUERIES) * (size_t)(LENGTH * DEPTH);
    float query[QUERIES][DEPTH], total[QUERIES][DEPTH], highest[QUERIES], weight[QUERIES];
    float keys[DEPTH][KEYS], values[KEYS][DEPTH], scores[QUERIES][KEYS];
    for (int r = 0; r < QUERIES; r++) {
        highest[r] = -INFINITY;
        weight[r] = 0;
        for (int d = 0; d < DEPTH; d += 16) {
            // Powers of 2 instead of e.
            vstore16(LOAD16(q + head + (first + r) * DEPTH + d) * (scale * M_LOG2E_F), 0, query[r] + d);
            vstore16((float16)0, 0, total[r] + d);
        }
    }
    int end = CAUSAL ? first + QUERIES : LENGTH;
    for (int n = 0; n < end; n += KEYS) {
        for (int j = 0; j < KEYS; j += 16)
            for (int d = 0; d < DEPTH; d += 16) {
                float16 tile[16];
#pragma unroll
                for (int i = 0; i < 16; i++)
                    tile[i] = LOAD16(k + head + (n + j + i) * DEPTH + d);
                transpose16(tile);
#pragma unroll
                for (int i = 0; i < 16; i++)
                    vstore16(tile[i], 0, keys[d + i] + j);
            }
        for (int j = 0; j < KEYS; j++)
            for (int d = 0; d < DEPTH; d += 16)
                vstore16(LOAD16(v + head + (n + j) * DEPTH + d), 0, values[j] + d);
        for (int r = 0; r < QUERIES; r += ROWS) {
            float16 a[ROWS], b[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; i++)
                a[i] = b[i] = 0;
            for (int d = 0; d < DEPTH; d++) {
                float16 left = vload16(0, keys[d]), right = vload16(0, keys[d] + 16);
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    a[i] = fma(query[r + i][d], left, a[i]);
                    b[i] = fma(query[r + i][d], right, b[i]);
                }
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                if (CAUSAL && n + KEYS > first) {
                    int16 key = n + (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
                    a[i] = select(a[i], (float16)-INFINITY, key > first + r + i);
                    b[i] = select(b[i], (float16)-INFINITY, key + 16 > first + r + i);
                }
                float most = fmax(highest[r + i], max16(fmax(a[i], b[i])));
                float shrink = exp2(highest[r + i] - most);
                a[i] = exp2(a[i] - most);
                b[i] = exp2(b[i] - most);
                weight[r + i] = weight[r + i] * shrink + sum16(a[i] + b[i]);
                highest[r + i] = most;
                vstore16(a[i], 0, scores[r + i]);
                vstore16(b[i], 0, scores[r + i] + 16);
                for (int d = 0; d < DEPTH; d += 16)
                    vstore16(vload16(0, total[r + i] + d) * shrink, 0, total[r + i] + d);
            }
            for (int d = 0; d < DEPTH; d += 32) {
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    a[i] = vload16(0, total[r + i] + d);
                    b[i] = vload16(0, total[r + i] + d + 16);
                }
                for (int j = 0; j < KEYS; j++) {
                    float16 left = vload16(0, values[j] + d), right = vload16(0, values[j] + d + 16);
#pragma unroll
                    for (int i = 0; i < ROWS; i++) {
                        a[i] = fma(scores[r + i][j], left, a[i]);
                        b[i] = fma(scores[r + i][j], right, b[i]);
                    }
                }
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    vstore16(a[i], 0, total[r + i] + d);
                    vstore16(b[i], 0, total[r + i] + d + 16);
                }
            }
        }
    }
    for (int r = 0; r < QUERIES; r++)
        for (int d = 0; d < DEPTH; d += 16)
            STORE16(vload16(0, total[r] + d) / weight[r], out + head + (first + r) * DEPTH + d);
}
