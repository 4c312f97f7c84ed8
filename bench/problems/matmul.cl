// A work-item has HEIGHT rows and 32 columns of C. It copies what it needs of B for a step along K into a panel in private
// memory, in f32, and then goes through its rows: ROWS of them by 32 columns are 2 ROWS vectors in registers.

#define HEIGHT 96
#define STEP 256

kernel void matmul(global const T *restrict a, global const T *restrict b, global T *restrict c, int m, int n, int k) {
    int across = (n + 31) / 32;
    int row = get_group_id(0) / across * HEIGHT, column = get_group_id(0) % across * 32;
    int height = min(HEIGHT, m - row), width = min(32, n - column);
    float panel[STEP][32], sums[HEIGHT][32], part[ROWS][STEP];
    for (int r = 0; r < HEIGHT; r++) {
        vstore16((float16)0, 0, sums[r]);
        vstore16((float16)0, 0, sums[r] + 16);
    }
    for (int first = 0; first < k; first += STEP) {
        int depth = min(STEP, k - first);
        for (int d = 0; d < depth; d++) {
            global const T *from = b + (size_t)(first + d) * n + column;
            if (width == 32) {
                vstore16(LOAD16(from), 0, panel[d]);
                vstore16(LOAD16(from + 16), 0, panel[d] + 16);
            } else
                for (int j = 0; j < 32; j++)
                    panel[d][j] = j < width ? LOAD(from + j) : 0;
        }
        for (int r = 0; r < height; r += ROWS) {
            for (int i = 0; i < ROWS; i++) {
                // Behind the last row, the last one is read again, and not stored.
                global const T *from = a + (size_t)(row + min(r + i, height - 1)) * k + first;
                int d = 0;
                for (; d + 16 <= depth; d += 16)
                    vstore16(LOAD16(from + d), 0, part[i] + d);
                for (; d < depth; d++)
                    part[i][d] = LOAD(from + d);
            }
            float16 left[ROWS], right[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                left[i] = vload16(0, sums[r + i]);
                right[i] = vload16(0, sums[r + i] + 16);
            }
            for (int d = 0; d < depth; d++) {
                float16 x = vload16(0, panel[d]), y = vload16(0, panel[d] + 16);
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    left[i] = fma(part[i][d], x, left[i]);
                    right[i] = fma(part[i][d], y, right[i]);
                }
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                vstore16(left[i], 0, sums[r + i]);
                vstore16(right[i], 0, sums[r + i] + 16);
            }
        }
    }
    for (int r = 0; r < height; r++) {
        global T *to = c + (size_t)(row + r) * n + column;
        if (width == 32) {
            STORE16(vload16(0, sums[r]), to);
            STORE16(vload16(0, sums[r] + 16), to + 16);
        } else
            for (int j = 0; j < width; j++)
                STORE(sums[r][j], to + j);
    }
}
