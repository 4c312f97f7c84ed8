// A work-item adds a block of BLOCK elements, the shape of Triton's kernel, in vectors of 16.

kernel void add(global const T *restrict x, global const T *restrict y, global T *restrict sum, int n) {
    int i = get_group_id(0) * BLOCK, end = min(i + BLOCK, n);
    for (; i + 16 <= end; i += 16)
        STORE16(LOAD16(x + i) + LOAD16(y + i), sum + i);
    for (; i < end; i++)
        STORE(LOAD(x + i) + LOAD(y + i), sum + i);
}

// A work-item an element; the implementation chooses the work-group.
kernel void add_each(global const T *restrict x, global const T *restrict y, global T *restrict sum, int n) {
    int i = get_global_id(0);
    if (i < n)
        STORE(LOAD(x + i) + LOAD(y + i), sum + i);
}
