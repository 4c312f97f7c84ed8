/* What device_calibration.c measures, and how much of it in one launch. */
#ifndef CALIBRATION_H
#define CALIBRATION_H

enum { DMA_READ, DMA_WRITE, ADD_INT32, MULTIPLY_INT32, DIVIDE_INT32, ADD_FLOAT, MULTIPLY_FLOAT, DIVIDE_FLOAT, TASKS };

/* Transfers in a row of one tasklet; elements of a tasklet's array, and how often a tasklet goes over them. */
enum { TRANSFERS = 16, ELEMENTS = 128, ROUNDS = 4 };

#endif
