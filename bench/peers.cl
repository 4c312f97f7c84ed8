// Vector addition as an OpenCL programmer would write it: what Triton's kernel is measured against.

// One work-item an element; the implementation chooses the work-group.
kernel void element(global const float *x, global const float *y, global float *sum, int n) {
    int i = get_global_id(0);
    if (i < n)
        sum[i] = x[i] + y[i];
}

// One work-item a block, the shape of Triton's kernel: a loop over BLOCK elements with the same test.
__attribute__((reqd_work_group_size(1, 1, 1)))
kernel void blocked(global const float *x, global const float *y, global float *sum, int n) {
    int start = get_group_id(0) * BLOCK;
    for (int k = 0; k < BLOCK; k++) {
        int i = start + k;
        if (i < n)
            sum[i] = x[i] + y[i];
    }
}

// The same without a test but for the last block, and told that nothing aliases: what a compiler vectorises best.
__attribute__((reqd_work_group_size(1, 1, 1)))
kernel void blocked_fast(global const float *restrict x, global const float *restrict y, global float *restrict sum,
                         int n) {
    int start = get_group_id(0) * BLOCK;
    int end = min(start + BLOCK, n);
    for (int i = start; i < end; i++)
        sum[i] = x[i] + y[i];
}
