#!/bin/sh
# Flow B: compiles the Triton kernel of dpu_min_test.py to LLVM IR, and generates the entry point and the structs of
# arguments that go with it. Needs no DPU and no UPMEM SDK.
#
#   TRITON_PY         Python with Triton and the dpu backend; default: that of third_party/triton/.venv or
#                     .venv/triton_env, else python3
#   TRITON_SRC        a source tree of Triton to use instead of the installed one; default: third_party/triton, if there
#   UPMEM_OPT         opt with the dpu-legalize pass; default: third_party/upmem_llvm's, if there, else the installed one
#   TRITON_CACHE_DIR  Triton's cache; default: a folder in TMPDIR
#   OUT_LL            where the IR goes; default bin/triton_add.ll
#   KERNEL_NAME       default add_kernel
#   TRITON_DPU_SKIP_LEGALIZE=1    leave the IR as it is before dpu-legalize: to look at, not to be linked
#   TRITON_DPU_FORCE_LEGALIZE=1   a failure of opt is an error; it always is
set -eu
cd "$(dirname "$0")/.."
root=$PWD
. scripts/environment.sh
if ! said=$("$TRITON_PY" scripts/check_triton.py 2>&1); then
    echo "error: $(printf '%s' "$said" | tail -n 1)" >&2
    if [ -n "${TRITON_SRC:-}" ]; then
        echo "  next: build that Triton for $TRITON_PY, or use the installed one: unset TRITON_SRC" >&2
    else
        echo "  next: ./container/start_docker.sh ./scripts/host_triton_ir.sh, which runs this in the image" >&2
    fi
    exit 1
fi

OUT_LL=${OUT_LL:-bin/triton_add.ll}
KERNEL_NAME=${KERNEL_NAME:-add_kernel}
mkdir -p "$(dirname "$OUT_LL")"
"$TRITON_PY" ./dpu_min_test.py --out "$OUT_LL"
"$TRITON_PY" scripts/generate_triton_wrapper.py \
    --ir "$OUT_LL" \
    --out dpu/triton_wrapper.ll \
    --kernel "$KERNEL_NAME" \
    --dpu-args-h dpu/triton_args.h \
    --dpu-args-c dpu/triton_args.c \
    --host-args-h host/triton_args.h
if [ "${TRITON_DPU_SKIP_LEGALIZE:-}" = 1 ]; then
    echo "$OUT_LL is as it was before dpu-legalize, since TRITON_DPU_SKIP_LEGALIZE=1: it cannot be linked." >&2
    echo "To run the kernel: unset TRITON_DPU_SKIP_LEGALIZE, and run this script again" >&2
else
    echo "next, in the container: ./scripts/container_triton_run.sh"
fi
