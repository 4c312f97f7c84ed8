// A work-item transposes a square of SIDE x SIDE elements, which stays in the cache, in tiles of 16 x 16: in registers if
// elements have 4 bytes, else element by element.

kernel void transpose(global const T *restrict x, global T *restrict y, int rows, int columns) {
    int across = (columns + SIDE - 1) / SIDE;
    int first_row = get_group_id(0) / across * SIDE, first_column = get_group_id(0) % across * SIDE;
    int last_row = min(first_row + SIDE, rows), last_column = min(first_column + SIDE, columns);
    for (int c = first_column; c < last_column; c += 16)
        for (int r = first_row; r < last_row; r += 16) {
#if TYPE == f32
            if (r + 16 <= last_row && c + 16 <= last_column) {
                float16 tile[16];
#pragma unroll
                for (int i = 0; i < 16; i++)
                    tile[i] = vload16(0, x + (size_t)(r + i) * columns + c);
                transpose16(tile);
#pragma unroll
                for (int i = 0; i < 16; i++)
                    vstore16(tile[i], 0, y + (size_t)(c + i) * rows + r);
                continue;
            }
#endif
            for (int j = c; j < min(c + 16, last_column); j++)
                for (int i = r; i < min(r + 16, last_row); i++)
                    y[(size_t)j * rows + i] = x[(size_t)i * columns + j];
        }
}
