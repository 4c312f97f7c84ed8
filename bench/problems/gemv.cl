// A work-item has ROWS rows, which it multiplies by the same vectors of 16 of x.

kernel void gemv(global const T *restrict a, global const T *restrict x, global T *restrict y, int m, int n) {
    int row = get_group_id(0) * ROWS;
    // Behind the last row, the last one is read again, and not stored.
    global const T *rows[ROWS];
    float16 sums[ROWS];
    for (int i = 0; i < ROWS; i++) {
        rows[i] = a + (size_t)min(row + i, m - 1) * n;
        sums[i] = 0;
    }
    int j = 0;
    for (; j + 16 <= n; j += 16) {
        float16 v = LOAD16(x + j);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            sums[i] = fma(LOAD16(rows[i] + j), v, sums[i]);
    }
    for (int i = 0; i < ROWS && row + i < m; i++) {
        float sum = sum16(sums[i]);
        for (int rest = j; rest < n; rest++)
            sum = fma(LOAD(rows[i] + rest), LOAD(x + rest), sum);
        STORE(sum, y + row + i);
    }
}
