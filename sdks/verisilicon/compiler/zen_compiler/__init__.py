"""The reference zen-compiler: TTIR in, SPIR-V and the library that generates tensor-core commands out."""
