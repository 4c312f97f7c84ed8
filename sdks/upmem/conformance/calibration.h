/* What device_calibration.c measures, and how much of it in one launch. */
#ifndef CALIBRATION_H
#define CALIBRATION_H

enum { DMA_READ, DMA_WRITE, DMA_UPDATE, ADD_INT32, MULTIPLY_INT32, DIVIDE_INT32, ADD_FLOAT, MULTIPLY_FLOAT, DIVIDE_FLOAT, TASKS };

/* Transfers of one tasklet in a row; elements of a tasklet's array; how often a tasklet does that. Bytes of the
   longest update, which needs a buffer of its tasklet. */
enum { IN_A_ROW = 16, ELEMENTS = 128, ROUNDS = 16, LONGEST_UPDATE = 1024 };

#endif
