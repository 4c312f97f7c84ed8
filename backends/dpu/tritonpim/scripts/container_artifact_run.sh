#!/bin/sh
# Flow C, in the container: builds an artifact's DPU program and host program, and runs it.
#
#   ARTIFACT_DIR=artifacts/add ./scripts/container_artifact_run.sh --nr-dpus 4 --arg 3=100
#   ./scripts/container_artifact_run.sh --help         what can be passed; says which parameters the kernel has
#
# ARTIFACT_DIR: the folder that host_triton_pack.py wrote; may be left out if artifacts/ has only one. What is built is
# kept in its build/.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

if [ -z "${ARTIFACT_DIR:-}" ]; then
    found=$(ls -d "$here"/../artifacts/*/meta.json 2>/dev/null || true)
    case $(printf '%s' "$found" | grep -c meta.json) in
    0)
        echo "error: artifacts/ has none: pack one with scripts/host_triton_pack.py, or set ARTIFACT_DIR" >&2
        exit 1
        ;;
    1) ARTIFACT_DIR=$(dirname "$found") ;;
    *)
        printf 'error: set ARTIFACT_DIR to the folder of one of\n%s\n' "$found" >&2
        exit 1
        ;;
    esac
fi
for file in kernel.ll wrapper.ll triton_args.h triton_args.c host_args.h host_runner.c meta.json; do
    if [ ! -f "$ARTIFACT_DIR/$file" ]; then
        echo "error: $ARTIFACT_DIR has no $file: pack it again with scripts/host_triton_pack.py" >&2
        exit 1
    fi
done

field() {
    sed -n "s/.*\"$1\": *\([0-9][0-9]*\).*/\1/p" "$ARTIFACT_DIR/meta.json"
}
tasklets=$(field num_tasklets) stack=$(field stack_size)
case $tasklets,$stack in
,* | *, | *[!0-9,]*)
    echo "error: $ARTIFACT_DIR/meta.json does not say num_tasklets and stack_size once: pack it again" >&2
    exit 1
    ;;
esac

# Built again when the artifact or the SDK is another one.
build=$ARTIFACT_DIR/build
stamp=$(cd "$ARTIFACT_DIR" && command -v dpu-upmem-dpurte-clang && cksum ./*.ll ./*.h ./*.c meta.json) || stamp=
if [ -z "$stamp" ] || [ ! -f "$build/stamp" ] || [ "$stamp" != "$(cat "$build/stamp")" ]; then
    mkdir -p "$build"
    rm -f "$build/stamp"
    "$here/build_dpu.sh" "$ARTIFACT_DIR/kernel.ll" "$ARTIFACT_DIR/wrapper.ll" "$ARTIFACT_DIR/triton_args.c" \
        "$tasklets" "$stack" "$build/kernel.dpu"
    # dpu-pkg-config prints several words.
    # shellcheck disable=SC2046
    cc -O2 -std=c11 -Wall -Wextra "$ARTIFACT_DIR/host_runner.c" $(dpu-pkg-config --cflags --libs dpu) -ldl \
        -o "$build/host_runner"
    printf '%s\n' "$stamp" >"$build/stamp"
fi
exec "$build/host_runner" "$@"
