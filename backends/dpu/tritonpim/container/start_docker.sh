#!/bin/sh
# A shell in the dpu image, with this folder at /mnt/host_cwd; or a command there.
#
#   ./container/start_docker.sh
#   ./container/start_docker.sh ./scripts/container_artifact_run.sh --arg 3=10
#
# The folder is mounted, so the engine must be on this machine. DPU_IMAGE: another image than the one that `./foundry
# build dpu` makes, such as one with UPMEM's SDK.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
foundry=$root/../../../foundry

if ! command -v docker >/dev/null; then
    echo "error: there is no docker command; ./foundry doctor says what to install, and ./foundry shell dpu needs none" >&2
    exit 1
fi
image=${DPU_IMAGE:-triton-foundry/dpu:latest}
if [ -z "${DPU_IMAGE:-}" ] && [ -x "$foundry" ]; then
    "$foundry" build dpu >&2
fi
terminal=
if [ -t 0 ] && [ -t 1 ]; then
    terminal=-t
fi
[ $# -gt 0 ] || set -- bash
# As the user who owns what is written; without a network, which nothing in there needs.
exec docker run --rm -i $terminal --network none --user "$(id -u):$(id -g)" \
    --volume "$root:/mnt/host_cwd" --workdir /mnt/host_cwd "$image" "$@"
