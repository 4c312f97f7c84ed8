// A work-item computes a row in vectors of 16: the mean, then the mean of the squared differences, then the results. The
// row stays in private memory in f32, so that it is read from memory once.

kernel void layer_norm(global const T *restrict x, global const float *restrict weight, global const float *restrict bias,
                       global T *restrict y, float epsilon) {
    global const T *row = x + get_group_id(0) * (size_t)COLUMNS;
    global T *out = y + get_group_id(0) * (size_t)COLUMNS;
    float values[COLUMNS];
    float16 total = 0;
    int i = 0;
    for (; i + 16 <= COLUMNS; i += 16) {
        float16 v = LOAD16(row + i);
        vstore16(v, 0, values + i);
        total += v;
    }
    float mean = sum16(total);
    for (; i < COLUMNS; i++)
        mean += values[i] = LOAD(row + i);
    mean /= COLUMNS;
    float16 squares = 0;
    for (i = 0; i + 16 <= COLUMNS; i += 16) {
        float16 v = vload16(0, values + i) - mean;
        squares += v * v;
    }
    float variance = sum16(squares);
    for (; i < COLUMNS; i++)
        variance += (values[i] - mean) * (values[i] - mean);
    float factor = 1 / sqrt(variance / COLUMNS + epsilon);
    for (i = 0; i + 16 <= COLUMNS; i += 16) {
        float16 v = (vload16(0, values + i) - mean) * factor;
        STORE16(v * vload16(0, weight + i) + vload16(0, bias + i), out + i);
    }
    for (; i < COLUMNS; i++)
        STORE((values[i] - mean) * factor * weight[i] + bias[i], out + i);
}
