// A work-item copies a row, in vectors of 16.
kernel void rows(global const T *restrict table, global const int *restrict index, global T *restrict out) {
    global const T *row = table + index[get_group_id(0)] * (size_t)COLUMNS;
    global T *to = out + get_group_id(0) * (size_t)COLUMNS;
    int i = 0;
    for (; i + 16 <= COLUMNS; i += 16)
        vstore16(vload16(0, row + i), 0, to + i);
    for (; i < COLUMNS; i++)
        to[i] = row[i];
}

// A work-item has a block of elements; the compiler makes vectors of the loop.
kernel void elements(global const T *restrict table, global const int *restrict index, global T *restrict out, int n) {
    int start = get_group_id(0) * BLOCK, end = min(start + BLOCK, n);
    for (int i = start; i < end; i++)
        out[i] = table[index[i]];
}
