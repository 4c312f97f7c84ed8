#!/bin/sh
# Builds a DPU program of a kernel, its entry point and its arguments, as TritonPIM does: each compiled by itself,
# .eh_frame removed (nothing on a DPU unwinds, and it would lie in MRAM), then linked. Needs the UPMEM SDK or its
# emulator.
#
#   build_dpu.sh KERNEL.ll WRAPPER.ll ARGS.c TASKLETS STACK_BYTES PROGRAM
set -eu
kernel=$1 wrapper=$2 arguments=$3 tasklets=$4 stack=$5 program=$6

if ! clang=$(command -v dpu-upmem-dpurte-clang); then
    echo "error: dpu-upmem-dpurte-clang is not on PATH: run this where the UPMEM SDK is, container/start_docker.sh" >&2
    exit 1
fi
# The SDK's own, beside its compiler: there may be others on PATH, which do not know DPUs.
objcopy=$(dirname "$clang")/llvm-objcopy

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$clang" -O2 -g0 -x ir -c "$kernel" -o "$work/kernel.o"
"$clang" -O2 -g0 -x ir -c "$wrapper" -o "$work/wrapper.o"
"$clang" -O2 -g0 -DNR_TASKLETS="$tasklets" -DSTACK_SIZE_DEFAULT="$stack" -c "$arguments" -o "$work/arguments.o"
for object in kernel wrapper arguments; do
    "$objcopy" --remove-section=.eh_frame "$work/$object.o"
done
"$clang" -DNR_TASKLETS="$tasklets" -DSTACK_SIZE_DEFAULT="$stack" \
    "$work/kernel.o" "$work/wrapper.o" "$work/arguments.o" -o "$program"
