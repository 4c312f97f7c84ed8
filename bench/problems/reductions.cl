// The sum of each row: a work-item a row, with four vectors of sums, so that an addition need not wait for the one before.
kernel void sum_rows(global const T *restrict x, global T *restrict y, int columns) {
    global const T *row = x + get_group_id(0) * (size_t)columns;
    float16 a = 0, b = 0, c = 0, d = 0;
    int i = 0;
    for (; i + 64 <= columns; i += 64) {
        a += LOAD16(row + i);
        b += LOAD16(row + i + 16);
        c += LOAD16(row + i + 32);
        d += LOAD16(row + i + 48);
    }
    for (; i + 16 <= columns; i += 16)
        a += LOAD16(row + i);
    float sum = sum16((a + b) + (c + d));
    for (; i < columns; i++)
        sum += LOAD(row + i);
    STORE(sum, y + get_group_id(0));
}

// The sum of each column: a work-item has 64 columns, in four vectors.
kernel void sum_columns(global const T *restrict x, global T *restrict y, int rows, int columns) {
    int first = get_group_id(0) * 64;
    if (first + 64 <= columns) {
        float16 a = 0, b = 0, c = 0, d = 0;
        for (int r = 0; r < rows; r++) {
            global const T *row = x + (size_t)r * columns + first;
            a += LOAD16(row);
            b += LOAD16(row + 16);
            c += LOAD16(row + 32);
            d += LOAD16(row + 48);
        }
        STORE16(a, y + first);
        STORE16(b, y + first + 16);
        STORE16(c, y + first + 32);
        STORE16(d, y + first + 48);
    } else
        for (int j = first; j < columns; j++) {
            float sum = 0;
            for (int r = 0; r < rows; r++)
                sum += LOAD(x + (size_t)r * columns + j);
            STORE(sum, y + j);
        }
}

// The place of the largest element of each row: for each of 16 lanes the largest and its place, then among the lanes.
kernel void argmax_rows(global const T *restrict x, global int *restrict y, int columns) {
    global const T *row = x + get_group_id(0) * (size_t)columns;
    float16 most = -INFINITY;
    int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), place = lane;
    int i = 0;
    for (; i + 16 <= columns; i += 16) {
        float16 v = LOAD16(row + i);
        place = select(place, lane + i, v > most);
        most = fmax(most, v);
    }
    float values[16], best = -INFINITY;
    int places[16], found = 0;
    vstore16(most, 0, values);
    vstore16(place, 0, places);
    for (int j = 0; j < 16; j++)
        if (values[j] > best || (values[j] == best && places[j] < found)) {
            best = values[j];
            found = places[j];
        }
    for (; i < columns; i++)
        if (LOAD(row + i) > best) {
            best = LOAD(row + i);
            found = i;
        }
    y[get_group_id(0)] = found;
}
