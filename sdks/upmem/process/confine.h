// Restrict a DPU's process to the few system calls that the scheduler needs. A DPU program has none.
#pragma once

// From here on any other system call, and any made in another way than 64-bit `syscall`, is the signal SIGSYS. Where
// the system does not allow filters, nothing happens: a program still has only 32-bit addresses and no system call of
// its own.
void confine();
