#include <cstdio>

const char *word();

int main() { return std::puts(word()) < 0; }
