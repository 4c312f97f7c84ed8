"""The verbs of Triton Foundry, a few lines each; the work is done in toolchains/.

Run them as `./foundry VERB ...`, or `invoke VERB ...` in its activated .venv.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from toolchains.cli.verb import verb

if TYPE_CHECKING:
    from toolchains.fromsource.choice import Choice
    from toolchains.sdk.supplied import Given


@verb(group="inputs", optional=["update"])
def pin(c: Context, update: str | None = None, check: bool = False, fetch: bool = False, offline: bool = False) -> None:
    """Show what is pinned and what it resolved to; update, check or fetch it.

        ./foundry pin                   show it; changes nothing
        ./foundry pin --update=numpy    lock what toolchains/pins/numpy.toml asks for now
        ./foundry pin --check --offline

    --update[=NAME]  resolve the pins against the archives as they are now, all, or one component, builder or project
                     that is built from source; show what changed
    --check          verify that pins, lock and files agree, and the LLVM commit inside each Triton
    --fetch          bring all files of the lock into the store, for building without a network; of sources, the Debian
                     packages of default profiles
    --offline        do not use the network; say what is missing
    """
    from toolchains.cli import pin as pinning

    pinning.act(update=update, check=check, fetch=fetch, offline=offline)


@verb(group="inputs", actions=["status", "apply", "refresh"])
def patch(c: Context, action: str, triton: str = "", tree: str = "", into: str = "") -> None:
    """Show, apply or rewrite the patches to Triton: status, apply, refresh.

        ./foundry patch status
        ./foundry patch apply --triton=3.9.0
        ./foundry patch refresh --triton=3.9.0 --tree=build/triton-3.9.0 --into=0003-compile-only-mode.patch

    status   which patches of which release are applied to, or would apply to, its wheel (or --tree); those of Debian
             packages, too
    apply    patch --tree; without it the release's wheel is unpacked under build/ first, to edit there
    refresh  rewrite the patches so that they fit the release's wheel exactly, and number the series; with --tree, an
             edited tree that has the whole series, take the edits into the patch --into (the last one by default)
    """
    from toolchains.cli import patch as patching

    patching.act(action, release=triton, tree=tree, into=into)


@verb(group="project")
def doctor(c: Context) -> None:
    """Check that this machine has what is needed, and print what to type for what is missing."""
    from toolchains.engine import host

    host.doctor()


@verb(group="use", optional=["from_source"], iterable=["source", "profile"], positional=["target"])
def build(
    c: Context,
    target: str,
    source: list[str],
    profile: list[str],
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
    no_cache: bool = False,
    sizes: bool = False,
    sdk: str = "",
    sdk_sha256: str = "",
    sdk_version: str = "",
    from_source: str | None = None,
    jobs: str = "",
    compiler_cache: str = "",
) -> None:
    """Build a target's image if what goes into it changed.

        ./foundry build spirv
        ./foundry build spirv --triton=3.6.0 --sizes
        ./foundry build dpu --sdk=PATH
        ./foundry build dpu --from-source=upmem-llvm

    The image is named by the digest of its inputs: triton-foundry/spirv:<digest>. If that name exists, nothing is done.
    triton-foundry/spirv:latest and triton-foundry/spirv:3.9.0 move along.

    --triton=3.6.0   another pinned release than the default one
    --offline        do not use the network; say what is missing
    --allow-drift    where the Debian archive no longer carries a locked package, take its current version; the image's
                     labels say so
    --no-cache       run the Dockerfiles again although the image exists; the result has the same ID
    --sizes          show what takes the space in the image
    --sdk=PATH       put the vendor's SDK, an archive or a folder that you have, in place of our emulator (dpu) or
                     reference SDK (vsi). It is looked at first: what is missing or would not run in the image is
                     listed. Its image has names of its own, triton-foundry/dpu-sdk:..., and is not for pushing. Its
                     sha256 is written down at the first use, and one that changed since is refused
    --sdk=environment  vsi: what VSI_SDK_DIR, VSI_ZEN_COMPILER_PATH and VSI_ZEN_TC_BRIDGE_PATH name. Without --sdk it
                     counts as given if all three are set, and that is said
    --sdk=reference  our own part, whatever is set
    --sdk-sha256=HEX the sha256 that it must have
    --sdk-version=X  its version, where its topmost folder does not say it
    --from-source[=NAMES]  build what the target otherwise takes prebuilt, all of it or these with commas between them;
                     `./foundry upstream` lists what there is. The image's names are triton-foundry/spirv-source:...
                     LLVM takes an hour or more the first time: a build that was interrupted goes on where it was
    --source=NAME=PATH     take the sources of NAME from this folder; may be given several times
    --profile=NAME=PROFILE which of its pinned sources; may be given several times
    --jobs=N         compilers at a time, where as many as processors and memory allow would be too many
    --compiler-cache=URL   ccache's remote storage, such as http://cache.example:8080. The compilers' container then
                     has a network, which is said
    """
    from toolchains.assembly import building

    building.build(
        target,
        triton=triton,
        offline=offline,
        allow_drift=allow_drift,
        cache=not no_cache,
        sizes=sizes,
        given=_given(target, sdk, sdk_sha256, sdk_version),
        choice=_choice(from_source, source, profile, jobs, compiler_cache),
    )


@verb(group="use", optional=["from_source"], iterable=["source", "profile"], positional=["target"])
def e2e(
    c: Context,
    target: str,
    source: list[str],
    profile: list[str],
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
    only: str = "",
    sdk: str = "",
    from_source: str | None = None,
) -> None:
    """Prove a target: build its image, run kernels in it, compare with NumPy.

        ./foundry e2e spirv
        ./foundry e2e spirv --only='matmul 512'
        ./foundry e2e dpu --triton=3.6.0

    A table on the terminal, junit.xml and results.json in build/results/<target>/<Triton's version>/; each of them says
    on which device the kernels ran. The exit status is 40 if anything was wrong, or a case did not run to its end. A
    case that crashes or takes more than ten minutes fails, and the next one runs.

    --triton=3.6.0   another pinned release than the default one
    --offline        do not use the network; say what is missing
    --allow-drift    as for `build`
    --only=TEXT      run the cases whose name contains TEXT, such as --only='matmul 512' or --only=bf16
    --sdk=PATH       the vendor's SDK in place of our own part; see `build`
    --from-source[=NAMES], --source=NAME=PATH, --profile=NAME=PROFILE   as for `build`. Without them, what `build` or
                     `upstream` has built from source already is used, and that is said; --from-source=none uses nothing
    """
    from toolchains.fromsource import choice
    from toolchains.testing import proof

    chosen = _choice(from_source, source, profile)
    if from_source is None and chosen is None:
        chosen = choice.there(target, triton)
    proof.e2e(
        target,
        triton=triton,
        offline=offline,
        allow_drift=allow_drift,
        only=only,
        given=_given(target, sdk),
        choice=chosen,
    )


@verb(group="use")
def bench(
    c: Context,
    target: str,
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
    only: str = "",
    sdk: str = "",
) -> None:
    """Time a target against its peers, in an image that has them.

        ./foundry bench spirv
        ./foundry bench vsi --only=matmul

    vec_add against the same loop in OpenCL C, matmul against CLBlast and OpenBLAS, the first launch of a kernel with
    empty and with filled caches, the cost of a launch. `bench vsi`: all of it against the spirv target on the same
    device. Candidates take turns in one run; compare only within one run.
    A table on the terminal, bench.json in build/results/<target>-bench/<Triton's version>/.

    --triton=3.6.0   another pinned release than the default one
    --offline        do not use the network; say what is missing
    --allow-drift    as for `build`
    --only=NAME      take one measurement, such as vec_add or matmul; an unknown name lists them
    --sdk=PATH       the vendor's SDK in place of our own part; see `build`
    """
    from toolchains.testing import proof

    proof.bench(target, triton=triton, offline=offline, allow_drift=allow_drift, only=only, given=_given(target, sdk))


@verb(group="pack")
def pack(
    c: Context,
    triton_script: str = "",
    artifact_dir: str = "",
    out_indices: str = "",
    kernel: str = "",
    script: str = "",
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
) -> None:
    """Write a Triton kernel to a folder that runs on DPUs without Triton.

        ./foundry pack --script=add.py --artifact-dir=packed/add

    In it are the kernel's LLVM IR, its entry point and arguments, a host program in C, and meta.json. `run-packed` runs
    it, and so does backends/dpu/tritonpim/scripts/container_artifact_run.sh wherever the UPMEM SDK is.

    --script=FILE       accepts --out PATH and writes LLVM IR there; --triton-script is the same. Default: the addition
                        in backends/dpu/tritonpim/dpu_min_test.py
    --artifact-dir=DIR  where to write
    --out-indices=2,3   which parameters of the kernel, counted from 0, are results; default: all that it writes
    --kernel=NAME       needed if the IR has several kernels
    --triton=3.6.0, --offline, --allow-drift   as for `build`
    """
    from toolchains.cli import pack as artifacts

    artifacts.pack(
        script or triton_script,
        artifact_dir,
        out_indices=out_indices,
        kernel=kernel,
        triton=triton,
        offline=offline,
        allow_drift=allow_drift,
    )


@verb(group="pack", iterable=["arg", "len", "in_", "fill", "out"], positional=["artifact"])
def run_packed(
    c: Context,
    artifact: str,
    arg: list[str],
    in_: list[str],
    out: list[str],
    fill: list[str],
    len: list[str],
    nr_dpus: str = "",
    grid: str = "",
    parameters: bool = False,
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
    sdk: str = "",
) -> None:
    """Run a packed kernel on DPUs.

        ./foundry run-packed packed/add --parameters
        ./foundry run-packed packed/add --nr-dpus=4 --arg=3=100 --in=0=a.bin --in=1=b.bin --out=2=c.bin

    IDX is the index of a parameter of the kernel. Without --in and --fill it is a trial on numbers that count up.

    --parameters      which parameters the kernel has, and all options; runs nothing
    --nr-dpus=N       DPUs to use
    --arg=IDX=VAL     value of a scalar; all of them must be given
    --in=IDX=PATH     raw elements of an array; a file of this machine
    --fill=IDX=VAL    every element of it instead
    --out=IDX=PATH    write an array there after the launch
    --len=IDX=N       elements of an array, where that does not follow
    --grid=X[,Y[,Z]]  programs to run, where that does not follow
    --sdk=PATH        the vendor's SDK in place of our emulator; see `build`
    --triton=3.6.0, --offline, --allow-drift   as for `build`
    """
    from toolchains.cli import pack as artifacts

    options = [
        word
        for name, values in (("arg", arg), ("len", len), ("fill", fill))
        for value in values
        for word in (f"--{name}", value)
    ]
    options += ["--nr-dpus", nr_dpus] * bool(nr_dpus) + ["--grid", grid] * bool(grid) + ["--help"] * parameters
    artifacts.run(
        artifact,
        options,
        ins=in_,
        outs=out,
        triton=triton,
        offline=offline,
        allow_drift=allow_drift,
        given=_given(artifacts.TARGET, sdk),
    )


@verb(
    group="use", optional=["from_source"], iterable=["source", "profile"], positional=["target", "script"], passing=True
)
def run(
    c: Context,
    target: str,
    script: str,
    source: list[str],
    profile: list[str],
    with_: str = "",
    results: str = "",
    wheels: str = "",
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
    sdk: str = "",
    from_source: str | None = None,
) -> None:
    """Run a Python script of yours in a target's container.

        ./foundry run spirv script.py --size 4096
        ./foundry run spirv-torch examples/get_started.py
        ./foundry run dpu --with=project --results=out project/tools/script.py

    The script's folder is copied to /foundry/work in the container, and the script runs there. Files that it writes or
    changes are copied back into the folder, also if it fails; nothing is deleted here. All words after the script are
    its arguments, and its exit status is that of this verb. Options of `run` go before the script.

    --with=PATH      copy this folder in place of the script's own; the script must be in it, and starts in it
    --results=DIR    write what comes back there, and leave the copied folder alone
    --wheels=DIR     install the wheels of this folder first. The container has no network: download them with what
                     they need, for the image's Python, by `pip download --only-binary=:all: --python-version VERSION`
    --triton=3.6.0   another pinned release than the default one
    --offline        do not use the network; say what is missing
    --allow-drift    as for `build`
    --sdk=PATH       the vendor's SDK in place of our own part; see `build`
    --from-source[=NAMES], --source=NAME=PATH, --profile=NAME=PROFILE   as for `build`
    """
    from toolchains.cli import passing, workplace

    sys.exit(
        workplace.run(
            target,
            script,
            passing.words(),
            folder=with_,
            results=results,
            wheels=wheels,
            triton=triton,
            offline=offline,
            allow_drift=allow_drift,
            given=_given(target, sdk),
            choice=_choice(from_source, source, profile),
        )
    )


@verb(group="use", optional=["from_source"], iterable=["source", "profile"], positional=["target"])
def shell(
    c: Context,
    target: str,
    source: list[str],
    profile: list[str],
    with_: str = "",
    results: str = "",
    wheels: str = "",
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
    sdk: str = "",
    from_source: str | None = None,
) -> None:
    """Open a shell in a target's container, in a copy of your folder.

        ./foundry shell spirv
        ./foundry shell spirv --with=.

    The container has no network. It has an editor, nano; README.md, docs, examples and e2e in /foundry; and a Python
    that `python -m pip install` can install wheels into. Try: python e2e/vec_add.py.

    --with=PATH      copy this folder to /foundry/work, and start there. Files that are new or changed are copied back
                     when the shell ends, however it ends; all other changes are gone
    --results=DIR    write what comes back there, and leave the copied folder alone
    --wheels=DIR     install the wheels of this folder first; see `run`
    --triton=3.6.0   another pinned release than the default one
    --offline        do not use the network; say what is missing
    --allow-drift    as for `build`
    --sdk=PATH       the vendor's SDK in place of our own part; see `build`
    --from-source[=NAMES], --source=NAME=PATH, --profile=NAME=PROFILE   as for `build`
    """
    from toolchains.cli import workplace

    sys.exit(
        workplace.shell(
            target,
            folder=with_,
            results=results,
            wheels=wheels,
            triton=triton,
            offline=offline,
            allow_drift=allow_drift,
            given=_given(target, sdk),
            choice=_choice(from_source, source, profile),
        )
    )


@verb(group="source", iterable=["source", "profile"], positional=[])
def upstream(
    c: Context,
    source: list[str],
    profile: list[str],
    build: str = "",
    target: str = "",
    jobs: str = "",
    compiler_cache: str = "",
) -> None:
    """List what can be built from source, or build one project alone.

        ./foundry upstream
        ./foundry upstream --build=upmem-llvm --jobs=2
        ./foundry upstream --build=triton --source=PATH --source=llvm=PATH

    `build TARGET --from-source` then finds it in the store, as `e2e` does. docs/from-source.md is the manual.

    --build=NAME     build this project, as far as it is not built already
    --target=dpu     that it is built for: its Debian suite, and what LLVM generates code for
    --source=NAME=PATH, --profile=NAME=PROFILE, --jobs=N, --compiler-cache=URL   as for `build`; `--source PATH` and
                     `--profile PROFILE` mean the project itself
    """
    from toolchains.cli import upstream as overview
    from toolchains.fromsource import choice

    if not build:
        overview.show()
        return
    source, profile = ([each if "=" in each else f"{build}={each}" for each in given] for given in (source, profile))
    chosen = choice.read(build, source, profile, jobs, compiler_cache)
    assert chosen is not None, "a project is named"
    overview.make(build, target, chosen)


@verb(group="project")
def test(c: Context, target: str = "", allow_drift: bool = False, sdk: str = "") -> None:
    """Run all checks: lint, types, tests here and in every target's images, e2e.

        ./foundry test
        ./foundry test --target=vsi

    The last line sums them up.

    --target=spirv   only this target's images
    --allow-drift    as for `build`
    --sdk=PATH       the vendor's SDK in place of our own part; see `build`
    """
    from toolchains.testing import suites

    sys.exit(suites.test(target, allow_drift=allow_drift, given=_given(target, sdk)))


@verb(group="source", actions=["push", "pull", "serve", "lock"], iterable=["source", "profile"], positional=["action"])
def cache(
    c: Context,
    action: str,
    source: list[str],
    profile: list[str],
    remote: str = "",
    only: str = "",
    target: str = "",
    expect: str = "",
    port: str = "",
) -> None:
    """Share what was built from source by a Conan remote: push, pull, serve, lock.

        ./foundry cache pull --remote=http://192.0.2.10:9300 --only=upmem-llvm --target=dpu

    push   give a remote the parts that have been built here; what it has already is not sent again
    pull   have the parts that this checkout would build, without building them. The remote is asked for exactly the
           recipe revision and package_id that a build here would have (commit, patches, image, presets, compiler), so
           a binary of anything else cannot come. Status 18: it does not have one of them
    serve  a conan-server for a network that you trust, until Ctrl-C or for a day: all may read, one user may write
    lock   write toolchains/conan.lock anew, after a change in toolchains/recipes or toolchains/upstreams

        export CONAN_LOGIN_USERNAME=me CONAN_PASSWORD=...      the machine that built: who may write
        ./foundry cache serve
        ./foundry cache push --remote=http://localhost:9300
        ./foundry cache pull --remote=http://THAT-MACHINE:9300    any other: reading needs no user
        ./foundry build dpu --from-source                         compiles nothing

    --remote=URL     conan-server, Artifactory or whatever else Conan 2 knows; seen from the engine's machine
    --only=NAMES     these projects, with commas between them; all that targets take without it
    --target=dpu     as this target takes them; without it as each target does
    --source=NAME=PATH, --profile=NAME=PROFILE   as for `build`
    --expect=SHA256  pull of one part: what its files must hash to, as push said. Without it the remote is trusted for
                     what is in a package; with it, it need not be
    --port=9300      where to serve

    Users and passwords are Conan's variables: CONAN_LOGIN_USERNAME and CONAN_PASSWORD; with _FOUNDRY behind, they are
    not seen by another Conan. They are never printed. Proxies and certificates are taken from the environment, too.
    """
    from toolchains.cli import cache
    from toolchains.fromsource import choice

    chosen = choice.read(only or True, source, profile, "", "")
    assert chosen is not None, "everything is meant where nothing is named"
    cache.act(action, chosen, url=remote, target=target, expect=expect, port=port)


@verb(group="source", optional=["from_source"], iterable=["source", "profile"], positional=["target"])
def bake(
    c: Context,
    target: str,
    source: list[str],
    profile: list[str],
    into: str = "",
    adopt: str = "",
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
    from_source: str | None = None,
) -> None:
    """Write what a builder on another machine needs for a target's image.

        ./foundry bake spirv --into=DIR          then, in DIR: docker buildx bake
        ./foundry bake spirv --adopt=DIR/image.tar

    DIR gets docker-bake.json and a context for each layer, with all that the build needs: no step uses a network.

    --into=DIR       where to write; a new or an empty folder
    --adopt=FILE     take what the builder sent back, DIR/image.tar, into this machine's engine, with dates, owners and
                     order as images made here have them
    --triton=3.6.0, --offline, --allow-drift, --from-source, --source, --profile   as for `build`; what is compiled is
                     compiled here, or was, and the builder gets the result
    """
    from toolchains.assembly import bake

    if adopt:
        bake.adopt(target, Path(adopt), triton=triton)
    else:
        bake.bake(
            target,
            into=into,
            triton=triton,
            offline=offline,
            allow_drift=allow_drift,
            choice=_choice(from_source, source, profile),
        )


@verb(group="project")
def prune(c: Context, remove: bool = False) -> None:
    """Show what the store and the engine keep without need, and remove it if asked to.

    Shown are fetched files, built parts and images that the lock does not name, and what killed runs left. Parts that
    were built from source, and images named latest or after a release, stay. Everything that is removed can be fetched
    or made again, but other checkouts of yours, with another lock, may use it. Let none of them build meanwhile.

        ./foundry prune
        ./foundry prune --remove

    --remove  remove what is shown
    """
    from toolchains.cli import prune as pruning

    pruning.prune(remove=remove)


@verb(group="project")
def ci(c: Context) -> None:
    """Print the matrix for a CI system: one line of JSON, see ci/workflow.yml."""
    from toolchains.lockfile import lock
    from toolchains.testing import matrix

    print(matrix.matrix(lock.load()))


def _given(target: str, sdk: str, sha256: str = "", version: str = "") -> Given | None:
    """The vendor SDK of a command line; None where it means none."""
    from toolchains.assembly import building
    from toolchains.sdk import selection

    locked = building.locked(target) if target else None
    return selection.meant(locked, sdk, os.environ, sha256=sha256, version=version)


def _choice(
    from_source: str | None, source: list[str], profile: list[str], jobs: str = "", compiler_cache: str = ""
) -> Choice | None:
    """What a command line wants built from source; None where it means nothing."""
    from toolchains.fromsource import choice

    return choice.read(from_source, source, profile, jobs, compiler_cache)
