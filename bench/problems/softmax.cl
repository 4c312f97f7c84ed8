// A work-item computes a row in vectors of 16: the largest element, the powers and their sum, the quotients. The powers
// stay in private memory, so that the row is read from memory once and written once.

kernel void softmax(global const T *restrict x, global T *restrict y) {
    global const T *row = x + get_group_id(0) * (size_t)COLUMNS;
    global T *out = y + get_group_id(0) * (size_t)COLUMNS;
    float powers[COLUMNS];
    float16 highest = -INFINITY, total = 0;
    int i = 0;
    for (; i + 16 <= COLUMNS; i += 16) {
        float16 v = LOAD16(row + i);
        vstore16(v, 0, powers + i);
        highest = fmax(highest, v);
    }
    float most = max16(highest);
    for (; i < COLUMNS; i++) {
        powers[i] = LOAD(row + i);
        most = fmax(most, powers[i]);
    }
    for (i = 0; i + 16 <= COLUMNS; i += 16) {
        float16 v = exp(vload16(0, powers + i) - most);
        vstore16(v, 0, powers + i);
        total += v;
    }
    float sum = sum16(total);
    for (; i < COLUMNS; i++)
        sum += powers[i] = exp(powers[i] - most);
    float factor = 1 / sum;
    for (i = 0; i + 16 <= COLUMNS; i += 16)
        STORE16(vload16(0, powers + i) * factor, out + i);
    for (; i < COLUMNS; i++)
        STORE(powers[i] * factor, out + i);
}
