int clGetPlatformIDs(void) { return 0; }
