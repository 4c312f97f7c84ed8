#include "Version.h"
#include <cstdio>

int main() { return std::puts(llvm_version()) < 0; }
