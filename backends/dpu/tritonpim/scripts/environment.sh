# Which Triton and which opt the host-side scripts use; read by them, with root set to this folder's parent. What is set
# wins, then third_party/, then what is installed. What is set and cannot be used is an error.

if [ -z "${TRITON_SRC:-}" ] && [ -d "$root/third_party/triton/python/triton" ]; then
    TRITON_SRC=$root/third_party/triton
fi
if [ -n "${TRITON_SRC:-}" ]; then
    if [ ! -f "$TRITON_SRC/python/triton/__init__.py" ]; then
        echo "error: TRITON_SRC=$TRITON_SRC has no python/triton/__init__.py: it is not a source tree of Triton" >&2
        echo "  next: unset TRITON_SRC, to use the installed Triton" >&2
        exit 1
    fi
    PYTHONPATH=$TRITON_SRC/python${PYTHONPATH:+:$PYTHONPATH} TRITON_DPU=1
    export TRITON_SRC PYTHONPATH TRITON_DPU
    # TritonPIM's Triton has a dpu backend of its own. With any other, the installed one is used.
    if [ -d "$TRITON_SRC/python/triton/backends/dpu" ]; then
        export TRITON_BACKENDS_IN_TREE=1
    fi
fi

if [ -z "${TRITON_PY:-}" ]; then
    TRITON_PY=python3
    for python in "$root/third_party/triton/.venv/bin/python" "$root/.venv/triton_env/bin/python"; do
        if [ -x "$python" ]; then
            TRITON_PY=$python
            break
        fi
    done
fi
if ! command -v "$TRITON_PY" >/dev/null; then
    echo "error: TRITON_PY=$TRITON_PY is not a program" >&2
    echo "  next: set TRITON_PY to a Python, or unset it to use python3" >&2
    exit 1
fi
export TRITON_PY

opt=$root/third_party/upmem_llvm/llvm-project/build/bin/opt
if [ -z "${UPMEM_OPT:-}" ] && [ -x "$opt" ]; then
    UPMEM_OPT=$opt
fi
if [ -n "${UPMEM_OPT:-}" ]; then
    if ! command -v "$UPMEM_OPT" >/dev/null; then
        echo "error: UPMEM_OPT=$UPMEM_OPT is not a program" >&2
        echo "  next: unset UPMEM_OPT, to use the installed opt, or build one:" >&2
        echo "        ./foundry build dpu --from-source=upmem-llvm" >&2
        exit 1
    fi
    TRITON_DPU_OPT=$UPMEM_OPT
    export UPMEM_OPT TRITON_DPU_OPT
fi

# ~/.triton may not be writable, in a container for one.
TRITON_CACHE_DIR=${TRITON_CACHE_DIR:-${TMPDIR:-/tmp}/triton-cache-$(id -u)}
if ! mkdir -p "$TRITON_CACHE_DIR" 2>/dev/null || [ ! -w "$TRITON_CACHE_DIR" ]; then
    echo "error: TRITON_CACHE_DIR=$TRITON_CACHE_DIR is not a folder that can be written to" >&2
    echo "  next: set TRITON_CACHE_DIR to one" >&2
    exit 1
fi
export TRITON_CACHE_DIR

# Say which opt legalises.
TRITON_DPU_VERBOSE=${TRITON_DPU_VERBOSE:-1}
export TRITON_DPU_VERBOSE
