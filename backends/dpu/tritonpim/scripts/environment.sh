# Which Triton and which opt the host-side scripts use; read by them, in this folder's parent. What is set wins, then
# third_party/, then what is installed.

if [ -z "${TRITON_SRC:-}" ] && [ -d third_party/triton/python/triton ]; then
    TRITON_SRC=$PWD/third_party/triton
fi
if [ -n "${TRITON_SRC:-}" ]; then
    if [ ! -d "$TRITON_SRC/python/triton" ]; then
        echo "error: TRITON_SRC=$TRITON_SRC has no python/triton; unset it to use the installed Triton" >&2
        exit 1
    fi
    PYTHONPATH=$TRITON_SRC/python${PYTHONPATH:+:$PYTHONPATH} TRITON_BACKENDS_IN_TREE=1 TRITON_DPU=1
    export TRITON_SRC PYTHONPATH TRITON_BACKENDS_IN_TREE TRITON_DPU
fi

if [ -z "${TRITON_PY:-}" ]; then
    TRITON_PY=python3
    for python in third_party/triton/.venv/bin/python .venv/triton_env/bin/python; do
        if [ -x "$python" ]; then
            TRITON_PY=$PWD/$python
            break
        fi
    done
fi
if ! command -v "$TRITON_PY" >/dev/null; then
    echo "error: TRITON_PY=$TRITON_PY is no program" >&2
    exit 1
fi
export TRITON_PY

opt=third_party/upmem_llvm/llvm-project/build/bin/opt
if [ -z "${UPMEM_OPT:-}" ] && [ -x "$opt" ]; then
    UPMEM_OPT=$PWD/$opt
fi
if [ -n "${UPMEM_OPT:-}" ]; then
    TRITON_DPU_OPT=$UPMEM_OPT
    export UPMEM_OPT TRITON_DPU_OPT
fi

# ~/.triton may not be writable, in a container for one.
TRITON_CACHE_DIR=${TRITON_CACHE_DIR:-${TMPDIR:-/tmp}/triton-cache-$(id -u)}
export TRITON_CACHE_DIR

# Say which opt legalises.
TRITON_DPU_VERBOSE=${TRITON_DPU_VERBOSE:-1}
export TRITON_DPU_VERBOSE
