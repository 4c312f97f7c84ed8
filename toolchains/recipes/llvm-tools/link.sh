# Run by toolchains/artifacts/linked.py in a root of only the packages of toolchains/pins/llvm-tools.toml.
# Static: the program starts in a tenth of the time that mlir-opt and its libraries take, and needs nothing of the image.
# Without gc-sections it has each pass that shares a source file with one that is used.
cd /usr/lib/llvm-22/lib
busybox mkdir -p /out/bin /tmp
/usr/lib/llvm-18/bin/clang -std=gnu17 -ffreestanding -Wall -Wextra -Werror -O2 -c -o /recipe/tools.o /recipe/tools.c
/usr/lib/llvm-18/bin/clang -static -s -fuse-ld=lld -Wl,--gc-sections -o /out/bin/llc /recipe/tools.o lib*.a -lz -lzstd -lstdc++ -lm
busybox ln -s llc /out/bin/mlir-opt
busybox ln -s llc /out/bin/mlir-translate
