#!/bin/sh
# Flow B, in the container: builds the kernel that host_triton_ir.sh wrote, runs it and checks C = A + B.
#
#   ./scripts/container_triton_run.sh [N]      N elements, 50 by default
#
# NR_DPUS: DPUs to use, default 1. OUT_LL: the kernel's LLVM IR, as for host_triton_ir.sh.
set -eu
cd "$(dirname "$0")/.."
kernel=${OUT_LL:-bin/triton_add.ll} NR_DPUS=${NR_DPUS:-1}

case $NR_DPUS in
'' | *[!0-9]* | 0*)
    echo "error: NR_DPUS=$NR_DPUS is not a number of DPUs
  next: NR_DPUS=1 $0" >&2
    exit 1
    ;;
esac

for file in "$kernel" dpu/triton_wrapper.ll dpu/triton_args.c host/triton_args.h; do
    if [ ! -f "$file" ]; then
        echo "error: there is no $file" >&2
        echo "  next: ./scripts/host_triton_ir.sh, which writes it" >&2
        exit 1
    fi
done

if open=$(grep -o -m 1 '@__triton_program_id\|@__triton_num_programs' "$kernel"); then
    echo "error: $kernel is as it was before dpu-legalize: it uses $open, which no DPU program defines" >&2
    echo "  next: unset TRITON_DPU_SKIP_LEGALIZE, and run scripts/host_triton_ir.sh again" >&2
    exit 1
fi

# What the compiler wrote into the IR about the kernel.
fact() {
    sed -n "s/^![0-9]* = !{!\"$1\", !\"\([0-9]*\)\"}\$/\1/p" "$kernel"
}
tasklets=$(fact num_tasklets) block=$(fact block)
if [ -z "$block" ]; then
    echo "error: $kernel does not say how many elements a program has: the dpu backend did not write it" >&2
    echo "  next: ./scripts/host_triton_ir.sh" >&2
    exit 1
fi

mkdir -p bin
./scripts/build_dpu.sh "$kernel" dpu/triton_wrapper.ll dpu/triton_args.c "$tasklets" 1024 bin/triton_add
# dpu-pkg-config prints several words.
# shellcheck disable=SC2046
cc -O2 -std=c11 -Wall -Wextra host/vec_add_triton_host.c $(dpu-pkg-config --cflags --libs dpu) \
    -DNR_DPUS="$NR_DPUS" -DBLOCK="$block" -o bin/vec_add_triton_host
exec bin/vec_add_triton_host "$@"
