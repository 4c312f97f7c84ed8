_Noreturn void _exit(int status);
