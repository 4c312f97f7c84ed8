"""The verbs of Triton Foundry, a few lines each; the work is done in toolchains/.

Run them as `./foundry VERB ...`, or `invoke VERB ...` in its activated .venv.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

try:
    from toolchains.cli import commandline
    from toolchains.cli.options import IMAGE, OPTIONS, SOURCES
    from toolchains.cli.verb import verb
    from toolchains.system.values import read_indexed, read_number, read_numbers, read_sha256
except ModuleNotFoundError as error:
    # An invoke of another environment, as after `pip install invoke`.
    sys.exit(
        f"error: this Python has no package {error.name}, which Triton Foundry needs\n"
        f"  why:  {sys.prefix} was not made from requirements.lock\n"
        "  next: ./foundry VERB ..., which makes .venv; then `. .venv/bin/activate` for `invoke VERB ...`"
    )

if TYPE_CHECKING:
    from toolchains.assembly.request import Request


def _packing_target(name: str) -> str:
    from toolchains.verbs import pack

    return pack.choose_target(name)


@verb(group="inputs", optional=["update"], json=True)
def pin(
    c: Context,
    update: str | None = None,
    check: bool = False,
    fetch: bool = False,
    security: bool = False,
    offline: bool = False,
    platform: str = "",
) -> None:
    """Show what is pinned and what it resolved to; update, check or fetch it.

        ./foundry pin                   show it; changes nothing
        ./foundry pin --update=numpy    lock what toolchains/pins/numpy.toml asks for now
        ./foundry pin --check --offline
        ./foundry pin --update --platform=linux/arm64

    --update[=NAME]  resolve the pins against the archives as they are now, and show what changed. NAME limits this to
                     one component, one target, one builder or one project that is built from source; wheels that
                     others require then stay as locked if they fit
    --check          verify that pins, lock, files and built parts agree, and verify the LLVM commit inside each Triton
    --security       with --check: ask the archives, too, of which locked packages there are security updates or newer
                     versions. The exit status is 43 if there are security updates
    --fetch          download all locked files into the store, so that a build needs no network. It fetches no
                     sources of upstream projects, except the Debian source packages of the default profiles
    --offline        do not use the network; list what is missing
    --platform=NAME  do this for one platform. Otherwise --update resolves each one that the lock has, and the rest is
                     about this machine's own
    """
    from toolchains.verbs import pin

    pin.pin(update=update, check=check, fetch=fetch, security=security, offline=offline, platform=platform)


@verb(group="inputs", actions=["status", "apply", "refresh"], json=True)
def patch(c: Context, action: str, triton: str = "", tree: str = "", into: str = "") -> None:
    """Show, apply or rewrite the patches to Triton: status, apply, refresh.

        ./foundry patch status
        ./foundry patch apply --triton=3.9.0
        ./foundry patch refresh --triton=3.9.0 --tree=build/triton-3.9.0 --into=0003-compile-only-mode.patch

    status   show for each release which patches are applied to its wheel (or to --tree), and which would apply; show
             the patches to Debian packages, too
    apply    patch --tree. Without --tree, unpack the release's wheel under build/ first, to edit it there
    refresh  rewrite the patches so that they fit the release's wheel exactly, and number the series. --tree names an
             edited tree that has the whole series; its edits go into the patch --into, by default the last one
    """
    from toolchains.verbs import patch

    patch.patch(action, release=triton, tree=tree, into=into)


@verb(group="project", wordless=True, json=True)
def doctor(
    c: Context,
    what: str,
    python: str = "",
    target: str = "",
    triton: str = "",
    check_store: bool = False,
    fix: bool = False,
) -> None:
    """Find what is wrong with this machine, its store, a Triton, a plugin or an SDK.

        ./foundry doctor
        ./foundry --yes doctor --fix
        ./foundry doctor --check-store
        ./foundry doctor --python=VENV/bin/python
        ./foundry doctor PLUGIN.whl --python=VENV/bin/python
        ./foundry doctor PLUGIN.whl --triton=3.9.0
        ./foundry doctor SDK.tar.gz --target=dpu

    Without a word, this checks programs, the engine, disk, memory, clocks, folders and the lock; and the Triton of
    --python, or of the active virtual environment: two distributions that have triton/, releases that do not fit,
    several active drivers, the variables TRITON_..., and files in Triton's cache that cannot be loaded. `--yes` (or
    CI=true) installs and starts what is missing. The exit status is 44 if something is found that will fail.

    WHAT is a wheel or a shared library that this Python loads: it is compared with this machine's libraries, with the
    Python, and with its libtriton.so (LLVM, symbols, compiler). With --target, WHAT is a vendor's SDK for that target.
    The sources of a plugin are compared with each release of Triton (docs/triton-releases.md), and not imported: what
    does not work with a release that the wheel requires, as in triton>=3.6,<3.10, will fail; the rest is a notice.

    --python=PATH    the Python that has Triton
    --target=NAME    dpu or vsi, or a variant: WHAT is an SDK for it
    --triton=RELEASE a release that the plugin must work with, or the wheel of one, such as a nightly one: it is
                     imported in a container, to see what it has
    --check-store    read every file in the store, and compare it with its digest; takes a minute
    --fix            repair what can be repaired without a loss: remove damaged files of the store and stale entries of
                     Triton's cache, which are made again
    """
    from toolchains.verbs import doctor

    doctor.doctor(what, python=python, target=target, triton=triton, check_store=check_store, fix=fix)


@verb(group="use", iterable=["key"], request=tuple(OPTIONS), json=True)
def build(c: Context, request: Request, key: list[str], sizes: bool = False, sign: str = "", from_: str = "") -> None:
    """Build a target's image if its inputs changed.

        ./foundry build spirv
        ./foundry build spirv --triton=3.6.0 --sizes
        ./foundry build dpu --sdk=PATH
        ./foundry build dpu --from-source=upmem-llvm
        ./foundry build spirv --from=registry.example/team --key=ci.pub

    The image is named by the digest of its inputs: triton-foundry/spirv:<digest>. If that name exists, nothing is done.
    The tag triton-foundry/spirv:3.9.0 moves to the newest image with that release of Triton, and
    triton-foundry/spirv:latest to the newest image with the default release.

    --allow-drift    take the current version of a locked package that the Debian archive no longer has; the image's
                     labels name the packages
    --no-cache       run the Dockerfiles again although the image exists; the result has the same ID
    --sizes          show which packages take the space in the image, and write it to sizes.json beside e2e's results
    --sign=KEY       sign the statement about how the image was made, in build/statements; see `keys`
    --from=REGISTRY  take the image from there instead, if it has one that a key signed for the inputs of this checkout;
                     otherwise print why not, and build. See `pull`
    --key=FILE.pub   whose signature counts for --from; may be given several times
    --sdk=PATH       use the vendor's SDK, an archive or a folder, in place of our emulator (dpu) or our reference SDK
                     (vsi). Foundry checks it first, and lists everything that is missing or would not run in the
                     image. The image gets other names, triton-foundry/dpu-sdk:..., and a label that says not to push
                     it. The SDK's sha256 is recorded at the first use; an SDK that changed since then is refused
    --sdk=environment  vsi: use the SDK that VSI_SDK_DIR, VSI_ZEN_COMPILER_PATH and VSI_ZEN_TC_BRIDGE_PATH name. This
                     is the default when all three variables are set, and prints a notice
    --sdk=reference  use our own part, whichever variables are set
    --sdk-sha256=HEX the sha256 that the SDK must have
    --sdk-version=X  the SDK's version, if the name of its topmost folder does not give it
    --from-source[=NAMES]  compile what the target otherwise takes prebuilt: everything, or the projects in NAMES,
                     separated by commas. `./foundry upstream` lists them. The image's names are
                     triton-foundry/spirv-source:... LLVM takes an hour or more the first time; a build that was
                     interrupted continues where it stopped
    --source=NAME=PATH     take the sources of NAME from this folder; may be given several times
    --profile=NAME=PROFILE use this pinned source of NAME; may be given several times
    --jobs=N         run N compilers at a time; by default as many as the processors and the memory allow
    --compiler-cache=URL   use ccache's remote storage, such as http://cache.example:8080. The container that compiles
                     then has a network, and Foundry prints a notice
    """
    from toolchains.verbs import build

    build.build(request, sizes=sizes, sign=sign, registry=from_, public=key)


@verb(group="use", request=(*IMAGE, "gpus", "plugin", "sdk", *SOURCES), built=True, json=True)
def e2e(c: Context, request: Request, only: str = "") -> None:
    """Prove a target: build its image, run kernels in it, compare with NumPy.

        ./foundry e2e spirv
        ./foundry e2e spirv --only='matmul 512'
        ./foundry e2e dpu --triton=3.6.0

    This prints a table, and writes junit.xml and results.json to build/results/<target>/<Triton's version>/. Each of
    them names the device that the kernels ran on. The exit status is 40 if a result was wrong or a case did not run to
    its end. A case that crashes or takes more than ten minutes fails, and the next one runs.

    --only=TEXT      run the cases whose name contains TEXT, such as --only='matmul 512' or --only=bf16. This proves
                     nothing of the others: the results are marked as partial, and go to the folder `only` in that of
                     the whole run, which keeps its results
    --from-source[=NAMES], --source=NAME=PATH, --profile=NAME=PROFILE   as for `build`. Without them, e2e uses what
                     `build` or `upstream` has already built from source, and prints a notice. --from-source=none uses
                     prebuilt parts only
    """
    from toolchains.verbs import e2e

    e2e.e2e(request, only=only)


@verb(group="use", request=(*IMAGE, "plugin", "sdk"), json=True)
def conformance(
    c: Context,
    request: Request,
    suite: str = "",
    only: str = "",
    timeout: str = "",
    table: str = "",
    sample: str = "",
    seed: str = "",
) -> None:
    """Run tests of Triton's language on a target: the project's, or any folder of tests.

        ./foundry conformance spirv
        ./foundry conformance spirv --suite=PATH/triton/python/test/unit/language
        ./foundry conformance spirv --suite=my_tests --only='test_sum[float16' --timeout=30
        ./foundry conformance spirv --suite=PATH/triton/python/test/unit/language --sample=200
        ./foundry conformance spirv --table=docs/operations.md

    For each test this says: pass; refused, with the operation; not applicable, with the reason; wrong; crash; time-out;
    error; or not run. It prints tables by file and by test function and what changed since the last run, and writes
    results.json and junit.xml to build/results/<target>/conformance/<Triton's version>/<suite>/. The exit status is 40
    if any test is wrong, crashed, took too long, failed for another reason or was not run. docs/conformance.md is the
    manual.

    --suite=PATH     a folder with pytest's tests, or one file. Their fixture `device` is "cpu". If they import torch,
                     they run in the variant of the target that has it, such as spirv-torch
    --only=TEXT      run the tests whose file and name contain TEXT; their results go to the folder `only`
    --timeout=SECONDS  for a test; 120 by default
    --sample=N       run N of these tests, drawn at random
    --seed=S         draw the same sample again: a run with --sample prints the number
    --table=FILE     write what the project's tests say of each operation and type into FILE, as the target's section
    """
    from toolchains.system.values import read_number
    from toolchains.verbs import conformance

    seconds = read_number("--timeout", timeout, example=60, default=conformance.LIMIT, most=conformance.LONGEST)
    count = read_number("--sample", sample, example=200)
    (drawn,) = read_numbers("--seed", seed, least=0, example="7", count=1) or (None,)
    conformance.conformance(request, suite=suite, only=only, timeout=seconds, table=table, sample=count, seed=drawn)


@verb(group="use", request=(*IMAGE, "gpus", "sdk"), json=True)
def bench(
    c: Context,
    request: Request,
    only: str = "",
    full: bool = False,
    cpu: str = "",
    profile: bool = False,
    plot: str = "",
) -> None:
    """Time a target against its peers, in an image that has them.

        ./foundry bench spirv
        ./foundry bench spirv --only=softmax --full
        ./foundry bench spirv --cpu=avx2
        ./foundry bench vsi --only=matmul

    On spirv, this compares each kernel with kernels in OpenCL C, written by hand, on the same device, with torch, and
    with CLBlast and OpenBLAS where they have it. Each result is first compared with NumPy's in float64. It also times
    the first launch of a kernel with empty and with filled caches, each stage of a compilation, and the cost of one
    launch; and it runs the tutorials as they time themselves, the first one with its plot. `bench vsi` compares with
    the spirv target on the same device; `bench dpu` compares modelled cycles with C programs on the same emulator.
    Candidates have the same threads and the same arrays, and take turns in one run; compare figures of one run only.
    This prints a table for each size and type when it is done, and writes bench.json, which `./foundry report` shows,
    to build/results/<target>-bench/<Triton's version>/, and the plot to its folder files.

    --only=NAME      take one measurement, such as vec_add or softmax; an unknown name lists them. Its figures go to the
                     folder `only`, and `./foundry report` shows them in place of older ones
    --full           measure each kernel in all its sizes and types, which takes about three times as long
    --profile        show what bounds each kernel, and its instructions by source line, too; see docs/profiling.md
    --plot=FILE      the same, and draw the rooflines of the kernels into this file of SVG
    --cpu=avx2       let PoCL, OpenBLAS, NumPy and torch use no more than a processor with AVX2 has. The folder of the
                     results then ends with -avx2
    """
    from toolchains.report import roofline
    from toolchains.verbs import bench

    place = roofline.read_place("--plot", plot)
    bench.bench(request, only=only, full=full, cpu=cpu, profile=profile, plot=place)


@verb(group="use")
def report(c: Context, output: str = "", results: str = "", compare: str = "") -> None:
    """Write one web page about what e2e, test, conformance, bench and build --sizes found.

        ./foundry report
        ./foundry report --compare=other.html --output=both.html
        ./foundry report --results=downloads/results

    The page shows each target with each release of Triton and what of it was run, on which devices, and what failed;
    conformance and measurements with their peers, and how both went over the runs; the rooflines of profiled kernels;
    what is in the images; and what changed in the lock since the last report. It is one file without scripts, which
    loads nothing, for light and dark screens of any width.
    What was not run is listed as not run. This runs and measures nothing itself.

    --output=FILE    where to write; build/results/report.html by default
    --results=DIR    read the results there, for example those that other machines' jobs brought together
    --compare=FILE   show another report beside this one: before and after a change, or two machines
    """
    from toolchains.verbs import report

    report.report(output=output, results=results, compare=compare)


@verb(group="pack", request=IMAGE, choose=_packing_target, wordless=3, passing=True)
def pack(
    c: Context,
    request: Request,
    script: str,
    artifact_dir: str,
    name: str = "",
    with_: str = "",
    device: str = "",
    triton_script: str = "",
    out_indices: str = "",
    kernel: str = "",
) -> None:
    """Write a script's kernels to a folder that runs without Triton.

    The folder has a C library, a CMake package, a pkg-config file, a Python loader, and an example that checks itself.

        ./foundry pack spirv add.py:add packed/add
        ./foundry pack --name=model spirv model.py:norm,matmul packed/model --size 4096
        ./foundry pack --script=add.py --artifact-dir=packed/add

    The first form runs SCRIPT in the target's container, and packs the kernels after the colon, with commas between
    them, or all that it launches. Each is compiled as the script launches it and in more general forms, among which a
    call chooses as Triton's JIT would. What triton.autotune chose is packed with the sizes that it was chosen for.
    Words after the folder are the script's. `run-packed` runs the folder; docs/packed.md says how programs use it.

    The last form is TritonPIM's, for DPUs only: the script writes LLVM IR, and launches nothing.

    --name=NAME         the name of the library, the header and the Python package; default: the first kernel's
    --with=PATH         copy this folder, too; the script must be in it. Otherwise only the script itself is copied
    --device=DEVICE     for spirv-vulkan: compile for a device that is not in the container: any-8, any-16, any-32 or
                        any-64 for any GPU with such subgroups, h100, or a description, see docs/packed.md

    For scripts that write LLVM IR:

    --script=FILE       accepts --out PATH and writes LLVM IR there; --triton-script is the same. Default: the addition
                        in backends/dpu/tritonpim/dpu_min_test.py
    --artifact-dir=DIR  where to write
    --out-indices=2,3   which parameters of the kernel, counted from 0, are results; default: all that it writes
    --kernel=NAME       needed if the IR has several kernels
    --target=NAME       needed if kernels of several targets can be packed
    """
    from toolchains.verbs import pack

    script = script or triton_script
    indices = read_numbers("--out-indices", out_indices, least=0, example="2,3")
    if pack.launches(request, script):
        words = commandline.script_words()
        pack.pack_launches(request, script, artifact_dir, name=name, with_=with_, device=device, words=words)
    else:
        pack.pack(request, script, artifact_dir, out_indices=indices, kernel=kernel)


@verb(group="pack", iterable=["arg", "len", "in_", "fill", "out"], request=(*IMAGE, "sdk"), choose=_packing_target)
def run_packed(
    c: Context,
    request: Request,
    artifact: str,
    arg: list[str],
    in_: list[str],
    out: list[str],
    fill: list[str],
    len: list[str],
    here: bool = False,
    device: str = "",
    ulp: str = "",
    nr_dpus: str = "",
    grid: str = "",
    parameters: bool = False,
) -> None:
    """Run packed kernels: as they were recorded, or on DPUs with arguments of yours.

        ./foundry run-packed packed/add
        ./foundry run-packed packed/add --here --device=0
        ./foundry run-packed packed/dpu --parameters
        ./foundry run-packed packed/dpu --nr-dpus=4 --arg=3=100 --in=0=a.bin --in=1=b.bin --out=2=c.bin

    A folder of a script that launches kernels has an example, which makes the recorded launches again and compares
    what they write. It runs in the container of the target that the folder was packed for. The exit status is not 0 if
    a result is wrong.

    --here            run the example on this machine: a program of the folder, with the device's loader of this machine
    --device=NAME     the device: its number, or a part of its name
    --ulp=N           how many units in the last place a float may differ, on another device than the recorded one

    The other options are for artifacts of scripts that write LLVM IR. IDX is the index of a parameter of the kernel.
    Without --in and --fill, the arrays hold numbers that count up.

    --parameters      print the kernel's parameters and all options, and run nothing
    --nr-dpus=N       the number of DPUs
    --arg=IDX=VAL     the value of a scalar; every scalar needs one
    --in=IDX=PATH     a file on this machine with the raw elements of an array
    --fill=IDX=VAL    the value of every element of an array, instead of a file
    --out=IDX=PATH    write an array to this file after the launch
    --len=IDX=N       the number of elements of an array, if it does not follow from the other options
    --grid=X[,Y[,Z]]  the programs to run, if they do not follow from the other options
    --target=NAME     another target, such as a variant of the one that the folder was packed for
    """
    from toolchains.verbs import pack

    if folder_request := pack.packed_request(request, artifact):
        number = read_number("--ulp", ulp, example=2)
        pack.run_folder(artifact, request=None if here else folder_request, device=device, ulp=number)
        return
    values = {"arg": arg, "len": len, "fill": fill}
    pack.run_packed(
        request,
        artifact,
        values={name: read_indexed(f"--{name}", words, example="3=100") for name, words in values.items()},
        ins=read_indexed("--in", in_, example="0=x.bin"),
        outs=read_indexed("--out", out, example="0=x.bin"),
        nr_dpus=read_number("--nr-dpus", nr_dpus, example=4),
        grid=read_numbers("--grid", grid, least=1, example="16,1,1", count=3),
        parameters=parameters,
    )


@verb(group="use", iterable=["env"], request=(*IMAGE, "gpus", "plugin", "sdk", *SOURCES), passing=True, json=True)
def run(
    c: Context,
    request: Request,
    script: str,
    env: list[str],
    with_: str = "",
    results: str = "",
    wheels: str = "",
    disk: str = "",
    check: bool = False,
    interpret: bool = False,
    profile_kernels: bool = False,
    plot: str = "",
) -> None:
    """Run a Python script of yours in a target's container.

        ./foundry run spirv script.py --size 4096
        ./foundry run spirv-torch --results=build/started examples/get_started.py
        ./foundry run dpu --with=project --results=out project/tools/script.py
        ./foundry run spirv --check script.py
        ./foundry run spirv --with=project -m pytest tests
        ./foundry run spirv -c 'import triton; print(triton.__version__)'
        ./foundry run spirv notebook.ipynb

    Foundry copies the script's folder to /foundry/work in the container, and runs the script there. Files that the
    script writes or changes are copied back into the folder, also if the script fails; nothing is deleted. All words
    after the script are its arguments, and its exit status is that of this verb. Options of `run` go before the script.
    In its place, -m MODULE runs a module, in a copy of the current folder, and -c CODE a text, as Python does. pytest
    is there for -m. A notebook's cells are run up to the first one that fails, and their outputs are written into it.
    On a terminal, a line says what is being done whenever nothing was printed for two seconds.

    The script gets the variables FOUNDRY_*, TRITON_*, POCL_*, DPU_EMULATOR_* and VSI_ENABLE_* of this machine, except
    those for this machine only; docs/configuration.md names them.

    --with=PATH      copy this folder instead of the script's folder; the script must be in it, and starts in it
    --results=DIR    write the files that come back to DIR, and leave the copied folder unchanged
    --wheels=DIR     install the wheels of this folder first. The container has no network: download the wheels and
                     what they need, for the image's Python, by
                     `pip download --only-binary=:all: --python-version VERSION`
    --check          the checked mode: report accesses outside of arrays and more, see docs/checked-mode.md
    --interpret      run kernels in Triton's own interpreter, without the target's device; see docs/debugging.md
    --env=NAME=VALUE, --env=NAME
                     set a variable for the script, in the second form to its value on this machine
    --disk=SIZE      end the script if it writes more than this, for example 500MB; 2GB by default
    --profile, --profile-kernels
                     when the script has ended, show what bounds each kernel that it launched, and the instructions of
                     each source line, and write the figures to profile.json in the folder; see docs/profiling.md
    --plot=FILE      the same, and draw the kernels' roofline into this file of SVG
    """
    from toolchains.cli import commandline
    from toolchains.report import roofline
    from toolchains.verbs import run

    picture = roofline.read_place("--plot", plot)
    switches = {"check": check, "interpret": interpret}
    place = run.Place.read(script=script, folder=with_, results=results, wheels=wheels, disk=disk, env=env, **switches)
    sys.exit(run.run_script(request, place, commandline.script_words(), profile=profile_kernels, plot=picture))


@verb(group="use", iterable=["env"], request=(*IMAGE, "gpus", "plugin", "sdk", *SOURCES))
def shell(
    c: Context, request: Request, env: list[str], with_: str = "", results: str = "", wheels: str = "", disk: str = ""
) -> None:
    """Open a shell in a target's container, in a copy of your folder.

        ./foundry shell spirv
        ./foundry shell spirv --with=.

    The container has no network. It has an editor, nano; README.md, docs, examples and e2e in /foundry; and a Python
    that `python -m pip install` can install wheels into. Try: python /foundry/e2e/vec_add.py.

    --with=PATH      copy this folder to /foundry/work, and start there. New and changed files are copied back when the
                     shell ends, however it ends; all other changes are lost
    --results=DIR    write the files that come back to DIR, and leave the copied folder unchanged
    --wheels=DIR     install the wheels of this folder first; see `run`
    --env=NAME=VALUE, --env=NAME
                     set a variable; see `run`, also for the variables of this machine that the shell gets
    --disk=SIZE      end the shell if more than this is written in it, for example 500MB; 2GB by default
    """
    from toolchains.verbs import run

    place = run.Place.read(folder=with_, results=results, wheels=wheels, disk=disk, env=env)
    sys.exit(run.open_shell(request, place))


@verb(group="use", request=("triton", "allow_drift"), wordless=True)
def devcontainer(c: Context, request: Request, folder: str, from_: str = "", force: bool = False) -> None:
    """Write .devcontainer/, so that editors open your repository in an image.

        ./foundry devcontainer spirv ~/kernels
        ./foundry devcontainer spirv ~/kernels --from=registry.example/team

    VS Code, JetBrains IDEs, GitHub Codespaces and the devcontainer CLI read it. FOLDER, the current one if none is
    given, is mounted into the container; you work there as the user foundry. The plugin is in the image.

    --from=REGISTRY  name the image by its digest in this registry, where `push` has sent it and where others find it.
                     It must be the published image, or one that was built here or came by `pull`. Without it, the
                     image is built if its inputs changed, and named as the engine of this machine has it
    --force          replace files of .devcontainer that have another text
    """
    from toolchains.verbs import devcontainer

    devcontainer.devcontainer(request, folder, registry=from_, force=force)


@verb(group="use", iterable=["env"], request=(*IMAGE, "gpus", "sdk", *SOURCES), wordless=True)
def notebook(
    c: Context,
    request: Request,
    place: str,
    env: list[str],
    results: str = "",
    wheels: str = "",
    disk: str = "",
    port: str = "",
) -> None:
    """Start Jupyter in a target's container, in a copy of your folder.

        ./foundry notebook spirv
        ./foundry notebook spirv examples/notebooks
        ./foundry notebook dpu kernels.ipynb

    PLACE is a folder, or a notebook, whose folder is copied; without it, the current folder is copied. The address has
    a token, and is one of this machine's loopback addresses, which no other machine reaches; the container has no
    network. Ctrl-C, or File > Shut Down in the browser, ends Jupyter. Then new and changed files are copied back; what
    was not saved is lost. `run` runs a notebook without a browser.

    --port=N         the port of this machine; a free one by default
    --results=DIR    write the files that come back to DIR, and leave the copied folder unchanged
    --wheels=DIR     install the wheels of this folder first; see `run`
    --env=NAME=VALUE, --env=NAME
                     set a variable; see `run`, also for the variables of this machine that notebooks get
    --disk=SIZE      end Jupyter if more than this is written, for example 500MB; 2GB by default
    """
    from toolchains.verbs import notebook

    number = read_number("--port", port, example=8888, default=0, most=65535)
    folders, name = notebook.place(place, results=results, wheels=wheels, disk=disk, env=env)
    sys.exit(notebook.serve(request, folders, name, number))


@verb(group="use", request=("offline", "allow_drift", "platform"))
def wheel(c: Context, request: Request, library: str = "", sign: str = "") -> None:
    """Write wheels that run a target's kernels without a container, beside a stock Triton.

        ./foundry wheel spirv

    build/wheels/spirv gets the plugin, core with its C library for Vulkan, once for x86-64 and once for arm64, what
    they require at the locked versions, requirements.txt with hashes, and README.md with the commands for the machine
    with the GPU. That machine needs Python 3.10 to 3.14, Triton 3.6.0 or 3.9.0 as published, NumPy, and a Vulkan
    driver; neither LLVM nor a network. auditwheel decides the wheels' tags. The same inputs give the same bytes.
    docs/targets/spirv-vulkan.md is the manual.

    --library=PATH   use this libfoundry_vulkan.so, for its machine alone; otherwise both are built in a container
    --sign=KEY       sign the statement about how the wheels were made, in build/statements; see `keys`
    """
    from toolchains.verbs import wheel

    wheel.wheel(request, library=library, sign=sign)


@verb(group="trust")
def keys(c: Context, path: str) -> None:
    """Make an ed25519 key that signs what you build.

        ./foundry keys ~/.config/foundry/mine
        ./foundry build spirv --sign=$HOME/.config/foundry/mine

    PATH gets the private key, which only you can read and which has no password; PATH.pub is for those who verify. An
    existing key is never replaced.
    """
    from toolchains.verbs import verify

    verify.make_key(path)


@verb(group="trust", iterable=["statement", "key"], json=True)
def verify(
    c: Context, what: str, statement: list[str], key: list[str], rebuilders: str = "", threshold: str = ""
) -> None:
    """Check that an image, an archive or wheels are what the lock says, without a network.

        ./foundry verify spirv
        docker save triton-foundry/dpu:3.9.0 > dpu.tar && ./foundry verify dpu.tar
        ./foundry verify build/wheels/spirv
        ./foundry verify spirv --statement=build/statements/spirv-3.9.0.intoto.jsonl --key=mine.pub
        ./foundry verify spirv --rebuilders=FOLDER --threshold=2

    An image is compared with what this store recorded when it built the image that the lock and this checkout ask for:
    its configuration, and each file of each layer. Wheels are compared with the lock, and ours with those that this
    checkout makes. The first file, label or setting that is not accounted for is named, and the exit status is 42.
    docs/trust.md says what this proves and what it does not.

    --statement=FILE     what somebody says of it, as `build` and `wheel` write it; may be given several times
    --key=FILE.pub       whose word counts; may be given several times. With statements, what nobody recorded here can
                         be verified too, but only as a whole
    --rebuilders=FOLDER  keys (*.pub) and statements (*.intoto.jsonl) of those who built the same
    --threshold=K        number of different keys in FOLDER that must have signed the same digest; 1 if not given
    """
    from toolchains.verbs import verify

    count = read_number("--threshold", threshold, example=2)
    verify.verify(what, statements=statement, public=key, rebuilders=rebuilders, threshold=count)


@verb(group="trust", request=("triton", "allow_drift", "platform"))
def push(c: Context, request: Request, registry: str, sign: str = "") -> None:
    """Push a target's image, its bills of materials and its signed statement to a registry.

        ./foundry push spirv registry.example/team --sign=$HOME/.config/foundry/mine
        ./foundry push spirv localhost:5000 --triton=3.6.0

    The image is built if its inputs changed. It gets the name REGISTRY/spirv:DIGEST; DIGEST is that of its inputs, so
    others find it without asking, and it is never replaced. The documents are attached to it as referrers (OCI 1.1). If
    the registry has the image, only documents are sent: several machines sign the same one. After a break, type the
    command again; what arrived is not sent again.

    An image with a vendor's SDK is refused: each file of each layer is looked at, not only names and labels. The user
    and the password are those of `docker login`. HTTP without TLS is used for this machine only.

    --sign=KEY       sign the statement; see `keys`. Without it, the statement that `build` wrote is pushed
    """
    from toolchains.verbs import push

    push.push(request, registry, sign=sign)


@verb(group="trust", iterable=["key"], request=("triton", "platform"))
def pull(c: Context, request: Request, registry: str, key: list[str], threshold: str = "") -> None:
    """Pull a target's image from a registry, if somebody whom you trust signed it.

        ./foundry pull spirv registry.example/team --key=ci.pub
        ./foundry pull spirv localhost:5000 --key=a.pub --key=b.pub --threshold=2

    The signed statement must name the image's ID, and the lock, plugins and Triton of this checkout; only then the
    image is fetched. If its ID was published, it must be that one. The ID of what arrived is compared with the signed
    one. The image gets the names of one that was built here, and other verbs use it. The statements go to
    build/statements: `verify --statement` compares with them.

    --key=FILE.pub   whose signature counts; may be given several times
    --threshold=K    number of different keys that must have signed; 1 if not given
    """
    from toolchains.verbs import pull

    pull.pull(request, registry, public=key, threshold=read_number("--threshold", threshold, example=2))


@verb(group="source", iterable=["source", "profile"], json=True)
def upstream(
    c: Context,
    source: list[str],
    profile: list[str],
    build: str = "",
    target: str = "",
    jobs: str = "",
    compiler_cache: str = "",
    offline: bool = False,
    allow_drift: bool = False,
) -> None:
    """List what can be built from source, or build one project alone.

        ./foundry upstream
        ./foundry upstream --build=upmem-llvm --jobs=2
        ./foundry upstream --build=triton --source=PATH --source=llvm=PATH

    `build TARGET --from-source` and `e2e TARGET` then find it in the store. docs/from-source.md is the manual.

    --build=NAME     build this project, and the projects that it requires, unless they are built already
    --target=dpu     the target to build for. It decides the Debian suite, and what LLVM generates code for
    --source=NAME=PATH, --profile=NAME=PROFILE, --jobs=N, --compiler-cache=URL   as for `build`; `--source PATH` and
                     `--profile PROFILE`, without a name, are for the project itself
    --offline        do not use the network; list what is missing
    --allow-drift    take the current version of a locked package that the Debian archive no longer has
    """
    from toolchains.fromsource import choice
    from toolchains.verbs import upstream

    if not build:
        upstream.show()
        return
    source, profile = ([word if "=" in word else f"{build}={word}" for word in words] for words in (source, profile))
    chosen = choice.read(build, source, profile, read_number("--jobs", jobs, example=2), compiler_cache)
    assert chosen is not None, "a project is named"
    upstream.build_project(build, target, chosen, offline=offline, allow_drift=allow_drift)


@verb(group="project")
def test(
    c: Context, target: str = "", plugin: bool = False, sdk: str = "", quick: bool = False, continue_: bool = False
) -> None:
    """Run all checks: lint, types, tests here and in every target's images, e2e.

        ./foundry --yes test
        ./foundry test --quick
        ./foundry test --target=vsi
        ./foundry test --target=vsi --plugin
        ./foundry test --continue

    A line for each suite says whether it passed. Its whole output is in a log in build/results/test; what failed is
    shown, in a log of CI with all that was printed. A terminal shows the time left: an estimate from the last run, or
    from a measured one. The last line summarises all tests. If Debian's archive no longer has a locked package, its
    current version is taken, and a line of the log names it. Ctrl-C ends all suites that run; what passed is recorded.

    --continue       run what has not passed in the last run with these options, of which Ctrl-C may have been the end.
                     A suite that passed is not run again if the commit, all files, Python and the variables that tests
                     read are the same; its tests are counted. Otherwise, everything runs

    --quick          run lint, types, and the fast tests on this machine, those of the lowering among them. They need
                     neither an engine nor a network. CONTRIBUTING.md says how long that takes
    --target=spirv   test this target's images only
    --plugin         run only the tests of the target's own plugin, in its image with the default release of Triton
    --sdk=PATH       the vendor's SDK in place of our own part; see `build`
    """
    from toolchains.verbs import test

    if quick:
        sys.exit(test.quick(for_images=bool(target or plugin or sdk), continued=continue_))
    requests = test.requests(target, sdk=sdk, plugin=plugin)
    if plugin:
        sys.exit(test.test_plugin(requests[0], continued=continue_))
    sys.exit(test.test(requests, target=target, continued=continue_))


@verb(group="source", actions=["push", "pull", "serve", "lock"], iterable=["source", "profile"])
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

    push   send the parts that were built here to a remote, except those that it already has
    pull   download the parts that this checkout would build. Foundry asks the remote for exactly the recipe revision
           and package_id that a build here would have (commit, patches, image, presets, compiler), so it cannot get
           the binary of anything else. The exit status is 18 if the remote does not have one of them
    serve  run a conan-server for a network that you trust, until Ctrl-C or for one day: everybody may read, one user
           may write
    lock   write toolchains/conan.lock again, after a change in toolchains/recipes or toolchains/upstreams

        export CONAN_LOGIN_USERNAME=me CONAN_PASSWORD=...      the machine that built: who may write
        ./foundry cache serve
        ./foundry cache push --remote=http://localhost:9300
        ./foundry cache pull --remote=http://THAT-MACHINE:9300    any other: reading needs no user
        ./foundry build dpu --from-source                         compiles nothing

    --remote=URL     the address of conan-server, Artifactory or another remote that Conan 2 supports, as the machine
                     of the container engine reaches it
    --only=NAMES     these projects, separated by commas; by default all projects that a target uses
    --target=dpu     the projects as this target uses them; by default as each target does
    --source=NAME=PATH, --profile=NAME=PROFILE   as for `build`
    --expect=SHA256  for a pull of one part: the sha256 of its files, which push printed. Without it you trust the
                     remote for the content of a package
    --port=9300      the port to serve at

    Conan's variables give the user and the password: CONAN_LOGIN_USERNAME and CONAN_PASSWORD. With the suffix _FOUNDRY
    they apply to this remote only. They are never printed. Proxies and certificates come from the environment, too.
    """
    from toolchains.fromsource import choice, server
    from toolchains.verbs import cache

    chosen = choice.read(only or True, source, profile)
    assert chosen is not None, "without a name, all projects are chosen"
    number = read_number("--port", port, example=server.PORT, default=server.PORT, most=65535)
    cache.cache(action, chosen, url=remote, target=target, expect=read_sha256("--expect", expect), port=number)


@verb(group="source", request=(*IMAGE, *SOURCES))
def bake(c: Context, request: Request, into: str = "", adopt: str = "") -> None:
    """Write what a builder on another machine needs for a target's image.

        ./foundry bake spirv --into=DIR          then, in DIR: docker buildx bake
        ./foundry bake spirv --adopt=DIR/image.tar

    DIR gets docker-bake.json and a context for each layer, with everything that the build needs: no step uses a
    network.

    --into=DIR       the folder to write; it must be new or empty
    --adopt=FILE     load DIR/image.tar, which the builder wrote, into this machine's engine, and normalise dates,
                     owners and order as in images that are built here
    --from-source[=NAMES], --source=NAME=PATH, --profile=NAME=PROFILE   as for `build`. Foundry compiles on
                     this machine's engine, and the builder gets the result
    """
    from toolchains.verbs import bake

    if adopt:
        bake.adopt(request, Path(adopt))
    else:
        bake.bake(request, into=into)


@verb(group="inputs", actions=["list", "show", "new"], nameless=["list"], json=True)
def target(c: Context, action: str, name: str, like: str = "", out: str = "", licence: str = "") -> None:
    """List and show targets, or write the files of a new one: list, show, new.

        ./foundry target list
        ./foundry target show dpu
        ./foundry target new my_npu --like=spirv
        ./foundry target new my_npu --like=spirv --out=../my-npu --licence=Apache-2.0

    list   show all targets: suite, releases of Triton, what an image of the default release fetches, and its size
    show   show what a target consists of: each part with its size, and where it can come from (prebuilt, from source,
           the vendor's SDK); and the names of its images
    new    write toolchains/targets/NAME.toml, docker/NAME.Dockerfile and the plugin backends/NAME. They build, and pass
           e2e and their tests, as they are: the plugin derives from that of another target. A TODO is where the
           hardware's own compiler and runtime go in. docs/target.md is the walk-through. Nothing is overwritten

    --like=TARGET  the target that a new one is made from; by default the one with the fewest parts
    --out=FOLDER   with `new`: write a plugin that is a repository of its own, with tests, a licence and CI for GitHub
                   and GitLab, and nothing into this tree. It is proven in the image of the other target, by --plugin of
                   `e2e`, `run` and `conformance`. docs/own-plugin.md is the walk-through
    --licence=NAME with --out: MIT, the default, Apache-2.0, or none
    """
    from toolchains.verbs import target

    target.target(action, name, like=like, out=out, licence=licence)


@verb(group="trust", request=IMAGE, json=True)
def repro(c: Context, request: Request, engine: str = "") -> None:
    """Build a target's image twice from nothing, and compare the two byte for byte.

        ./foundry repro spirv
        ./foundry repro dpu --triton=3.6.0 --engine=ssh://another-machine

    The builds differ in the folder of the checkout, the stores and temporary files, host name, umask, locale, time
    zone, the number of processors, and with --engine the container engine. A table lists these, and what was not
    varied. The builds' stores have the locked files and nothing that was built. Foundry compares the image's
    configuration and layers, native parts, the patched Triton and the wheels: the two with each other, and the first
    with what this machine built before and with toolchains/expected.json.

    For each difference this prints the layer, the file, and what differs: bytes, mode, owner, time, order, link
    target or presence. Texts are shown as a diff and libraries by section, also inside archives. All differences are in
    build/results/<target>/<Triton's version>/repro.txt. The exit status is 0 if all is equal, and 1 if not. The
    engine's images and their names stay as they were.

    --engine=HOST    let another container engine build the second image; an address as in DOCKER_HOST
    """
    from toolchains.verbs import repro

    sys.exit(repro.repro(request, engine=engine))


@verb(group="trust", optional=["update"], json=True)
def expected(c: Context, update: str | None = None, offline: bool = False) -> None:
    """Show which images have a published ID, or publish those whose inputs changed.

        ./foundry expected
        ./foundry expected --update
        ./foundry expected --update=spirv

    toolchains/expected.json has for each target and release of Triton the digest of the inputs, the image ID and the
    sha256 of each layer, and the sha256 of the parts: our wheels, the patched Triton, native parts. `build`, `repro`
    and `test` compare with it what has the same inputs; `release --check` requires that all entries are current.

    --update[=TARGET]  build the images whose inputs changed, and write their entries; of all targets or of this one.
                     "spirv-arm64" is spirv for linux/arm64, which is published the first time only by its name.
                     Nothing else is built. Packages that are not as locked are refused
    --offline        do not use the network; list what is missing
    """
    from toolchains.verbs import expected

    expected.expected(update=update, offline=offline)


@verb(group="trust", wordless=True, optional=["from_source"], iterable=["source", "profile"], json=True)
def sbom(
    c: Context,
    what: str,
    source: list[str],
    profile: list[str],
    part: str = "",
    format: str = "cyclonedx",
    output: str = "",
    licences: bool = False,
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
    sdk: str = "",
    from_source: str | None = None,
    platform: str = "",
) -> None:
    """Write what an image, a native part or a wheel consists of, with licences.

        ./foundry sbom spirv --output=spirv.cdx.json
        ./foundry sbom spirv --format=spdx --output=spirv.spdx.json
        ./foundry sbom dpu --part=dpu-legalize
        ./foundry sbom build/wheels/spirv/NAME.whl
        ./foundry sbom --licences

    WHAT is a target or a wheel that Foundry made. This writes a bill of materials: packages with versions, hashes,
    licences and source packages; Triton with the patches that it has; native parts with the digests of their sources;
    and what is left out of packages. It is made from the lock and the sources, and needs no image: the same checkout
    gives the same bytes on each machine. docs/trust.md is the manual.

    --format=spdx    SPDX 2.3 in JSON; the default is cyclonedx, CycloneDX 1.6 in JSON
    --output=FILE    write to FILE instead of stdout
    --part=NAME      a native part of the target, with all that it was built with
    --licences       print the licences of a target's components; without WHAT, of all targets that `ci` prints. The
                     exit status is 41 if one is unknown
    --triton=3.6.0   another pinned release than the default one
    --platform=linux/arm64   the image for another kind of processor than this machine's; see docs/platforms.md
    --offline        do not use the network; list what is missing
    --allow-drift, --sdk=PATH, --from-source[=NAMES], --source=NAME=PATH, --profile=NAME=PROFILE
                     as for `build`: what is in an image that was built with them
    """
    from toolchains.assembly.request import Request
    from toolchains.verbs import sbom

    read = functools.partial(
        Request.read,
        triton=triton,
        offline=offline,
        allow_drift=allow_drift,
        sdk=sdk,
        from_source=from_source,
        source=source,
        profile=profile,
        platform=platform,
    )
    if licences:
        sbom.licences(what, read)
    else:
        sbom.sbom(what, read, part=part, form=format, output=output)


@verb(group="project", json=True)
def prune(c: Context, remove: bool = False) -> None:
    """Show what this checkout does not use, and remove it on request.

    This lists what the store and the engine keep: fetched files, built parts and images that the lock does not name,
    indices of other suites, old logs, and what killed runs left. What a container uses stays, as do parts that were
    built from source, and images with the tag latest or a release as a tag. Everything that is removed can be fetched
    or built again, but other checkouts with another lock may use it. Let none of them build at the same time.

        ./foundry prune
        ./foundry prune --remove

    --remove  remove what is shown
    """
    from toolchains.verbs import prune

    prune.prune(remove=remove)


@verb(group="project")
def ci(c: Context, write: str = "") -> None:
    """Print the matrix of targets and releases for a CI system, or write the file of one.

        ./foundry ci
        ./foundry ci --write=github
        ./foundry ci --write=gitlab
        ./foundry ci --write=bake

    Without an option, this prints one line of JSON: each release of each target that `./foundry test` covers. Variants
    that differ from their target in packages only are left out: dpu-dev, spirv-bench.

    The file of a system has a job for each of them, one for `test --quick`, one for .ci/run, and one that writes the
    report of all. With `bake`, the file is for BuildKit: it builds the image of each of them from the folders that
    `./foundry bake TARGET` writes, see docs/from-source.md.

    --write=SYSTEM   write .github/workflows/foundry.yml, .gitlab-ci.yml or ci/docker-bake.json from the targets as they
                     are now. The templates of the first two are in ci/; their first lines say which runners they need
    """
    from toolchains.lockfile import lock
    from toolchains.repro import expected
    from toolchains.verbs import ci

    locked = expected.due(lock.everything())
    print(f"written to {ci.write(write, locked)}" if write else ci.matrix(locked))


@verb(group="project")
def docs(c: Context, serve: bool = False, port: str = "") -> None:
    """Make the site of the documentation, and check its links.

        ./foundry docs
        ./foundry docs --serve

    This writes build/docs/index.html: the pages of docs/, README.md, CHANGELOG.md, CONTRIBUTING.md and the pages that
    they link to, with a search, for light and dark screens. It loads nothing from other servers. The exit status is 41
    if a link, an anchor or a picture leads nowhere, or if a page is not in the navigation; the site of the last run
    then stays. The first run installs Sphinx into build/venv-docs, from docs/site/requirements.lock.

    --serve      serve the site to browsers on this machine, until Ctrl-C
    --port=8000  the port to serve at
    """
    from toolchains.verbs import docs

    docs.docs(serve=serve, port=read_number("--port", port, example=8001, default=docs.PORT, most=65535))


@verb(group="project")
def release(c: Context, check: bool = False) -> None:
    """Show the version and what is new in it, or check that this commit can be released.

        ./foundry release
        ./foundry release --check

    The version of all packages is in VERSION. CONTRIBUTING.md has the steps of a release.

    --check  check that the version was not released before, that all files are committed, that CHANGELOG.md has the
             version and its date, that locks, generated files and published IDs are current, and that all wheels build
             and have the version. The exit status is 41 if one of them is wrong
    """
    from toolchains.verbs import release

    release.release(check=check)


@verb(group="project", actions=["bash", "zsh", "fish"])
def completion(c: Context, action: str) -> None:
    """Print the script that completes words in a shell: bash, zsh, fish.

        source <(./foundry completion bash)       in ~/.bashrc, with the path of this checkout
        source <(./foundry completion zsh)        in ~/.zshrc
        ./foundry completion fish | source        in ~/.config/fish/config.fish

    It completes verbs, targets, releases of Triton, options and files after `./foundry` and `foundry` on PATH; in bash
    also after the name that verbs have in the activated .venv, in this checkout. The words are those of the checkout
    when the shell started. A TAB starts no program.
    """
    from toolchains.verbs import completion

    completion.completion(action)
