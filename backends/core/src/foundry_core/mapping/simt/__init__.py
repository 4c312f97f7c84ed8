"""A program is a workgroup, and its tiles are in the registers of the invocations: for GPUs, from TTGIR."""
