#!/bin/sh
# Where Triton and UPMEM's LLVM are: links them under third_party/ and says what to export. To be sourced, which exports
# it in the shell; run as a script, it prints the lines.
#
#   source scripts/use_local_deps.sh --link --triton /path/to/triton --upmem /path/to/upmem_llvm
#
#   --triton DIR   a source tree of Triton
#   --upmem DIR    the folder with llvm-project, built in llvm-project/build; or llvm-project itself
#   --python FILE  the Python that runs Triton
#   --cache DIR    Triton's cache
#   --link         also link the first two as third_party/triton and third_party/upmem_llvm
#
# With none of them: for what third_party/ has. Nothing of it is needed where the dpu backend is installed, as it is in
# this project's image.

_dpu_deps() {
    _dpu_root=$1
    shift
    _dpu_link= _dpu_triton= _dpu_upmem= _dpu_python= _dpu_cache=
    while [ $# -gt 0 ]; do
        case $1 in
        --link) _dpu_link=1; shift; continue ;;
        --triton | --upmem | --python | --cache) ;;
        *) echo "error: $1: use --link, --triton DIR, --upmem DIR, --python FILE or --cache DIR" >&2; return 2 ;;
        esac
        if [ $# -lt 2 ]; then
            echo "error: $1 needs a path" >&2
            return 2
        fi
        case $1 in
        --triton) _dpu_triton=$2 ;;
        --upmem) _dpu_upmem=$2 ;;
        --python) _dpu_python=$2 ;;
        --cache) _dpu_cache=$2 ;;
        esac
        shift 2
    done
    : "${_dpu_triton:=$(_dpu_found "$_dpu_root/third_party/triton")}"
    : "${_dpu_upmem:=$(_dpu_found "$_dpu_root/third_party/upmem_llvm")}"

    if [ -n "$_dpu_triton" ] && [ ! -d "$_dpu_triton/python/triton" ]; then
        echo "error: $_dpu_triton has no python/triton: it is no source tree of Triton" >&2
        return 1
    fi
    _dpu_opt=
    if [ -n "$_dpu_upmem" ]; then
        for _dpu_opt in "$_dpu_upmem/llvm-project/build/bin/opt" "$_dpu_upmem/build/bin/opt" ''; do
            [ -n "$_dpu_opt" ] && [ -x "$_dpu_opt" ] && break
        done
        if [ -z "$_dpu_opt" ]; then
            echo "error: $_dpu_upmem has no llvm-project/build/bin/opt: build it first" >&2
            return 1
        fi
    fi
    if [ -n "$_dpu_link" ]; then
        [ -z "$_dpu_triton" ] || _dpu_linked "$_dpu_triton" "$_dpu_root/third_party/triton" || return 1
        [ -z "$_dpu_upmem" ] || _dpu_linked "$_dpu_upmem" "$_dpu_root/third_party/upmem_llvm" || return 1
    fi
    [ -z "$_dpu_triton" ] || _dpu_export TRITON_SRC "$_dpu_triton"
    [ -z "$_dpu_opt" ] || _dpu_export UPMEM_OPT "$_dpu_opt"
    [ -z "$_dpu_python" ] || _dpu_export TRITON_PY "$_dpu_python"
    [ -z "$_dpu_cache" ] || _dpu_export TRITON_CACHE_DIR "$_dpu_cache"
}

# A folder, if it is there.
_dpu_found() {
    [ ! -d "$1" ] || printf '%s' "$1"
}

# Link a folder, unless it already is what the link would lead to.
_dpu_linked() {
    if [ -e "$2" ] && [ "$(readlink -f "$1")" = "$(readlink -f "$2")" ]; then
        return
    fi
    if [ -e "$2" ] && [ ! -L "$2" ]; then
        echo "error: $2 is there and is no link; move it away first" >&2
        return 1
    fi
    ln -sfn "$(readlink -f "$1")" "$2"
}

_dpu_export() {
    export "$1=$2"
    echo "export $1='$2'"
}

_dpu_deps "$(cd "$(dirname "${BASH_SOURCE:-$0}")/.." && pwd)" "$@"
