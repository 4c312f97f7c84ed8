"""What the recipes of upstream's own projects share, for Conan's python_requires: the class Upstream.

The source tree lies beside the recipe, verified and patched by toolchains/fromsource/tree.py; the recipe says what is
configured, compiled and packaged of it. The folder that holds both outlives the container that compiles in it, so that
a build which was killed goes on where it was:

    conanfile.py    the recipe
    source/         the tree
    build/          CMake's and Ninja's

Its options carry what the tree and the tools are, so that Conan's package_id covers them and a remote cannot answer
with a binary of anything else.
"""

from __future__ import annotations

import shlex
from io import StringIO
from pathlib import Path

from conan import ConanFile
from conan.tools.files import copy

# Which source, patches, image, and presets with all that is compiled in beside them: digests, set by who builds.
_INPUTS = ("commit", "patches", "image", "presets")


class Upstream:
    """Configure by a preset, build some targets, package some programs; a recipe overrides what differs.

    Attributes:
        preset: in cmake/CMakePresets.json; the recipe's name if empty.
        subfolder: of the tree, where its topmost CMakeLists.txt lies.
        targets: what Ninja is asked for.
        programs: of build/bin, which are packaged, stripped.

    The conf user.foundry:presets is CMakePresets.json's path, user.foundry:jobs and user.foundry:links are how many
    compilers and how many linkers may run at a time.
    """

    package_type = "application"
    settings = "os", "arch", "compiler", "build_type"

    preset = ""
    subfolder = ""
    targets: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()

    def init(self) -> None:
        inputs = {name: ["ANY"] for name in _INPUTS}
        self.options.update(inputs, dict.fromkeys(_INPUTS, "unknown"))

    def layout(self) -> None:
        self.folders.source = "source"
        self.folders.build = "build"
        self.folders.generators = "build/conan"

    def variables(self) -> dict[str, str]:
        """CMake's cache variables beside those of the preset."""
        return {}

    def build(self) -> None:
        self.configure_tree()
        self.compile(*self.targets)

    def configure_tree(self) -> None:
        """Run CMake; again for a folder that it has been run in."""
        links = self.conf.get("user.foundry:links", default=1, check_type=int)
        # The pool bounds linkers, whose number and not the compilers' decides how much memory is needed.
        variables = {"CMAKE_JOB_POOLS": f"link={links}", "CMAKE_JOB_POOL_LINK": "link"} | self.variables()
        self.run(
            shlex.join(
                [
                    "cmake",
                    f"--presets-file={self.conf.get('user.foundry:presets', check_type=str)}",
                    "--preset",
                    self.preset or self.name,
                    "-S",
                    str(Path(self.source_folder, self.subfolder)),
                    "-B",
                    self.build_folder,
                    *(f"-D{name}={value}" for name, value in variables.items()),
                ]
            )
        )

    def compile(self, *targets: str) -> None:
        """Run Ninja, which leaves alone what is there already; first say how many steps that and the rest are."""
        jobs = self.conf.get("user.foundry:jobs", default=1, check_type=int)
        steps = StringIO()
        self.run(shlex.join(["ninja", "-C", self.build_folder, "-t", "commands", *targets]), stdout=steps, quiet=True)
        self.output.info(f"steps in all: {len(steps.getvalue().splitlines())}")
        self.run(
            shlex.join(
                [
                    "cmake",
                    "--build",
                    self.build_folder,
                    "--parallel",
                    str(jobs),
                    "--target",
                    *targets,
                ]
            )
        )

    def package(self) -> None:
        self.package_programs()

    def package_programs(self) -> None:
        """Put the programs into the package, without what only debuggers read."""
        for name in self.programs:
            copy(self, name, Path(self.build_folder, "bin"), Path(self.package_folder, "bin"))
            self.run(shlex.join(["strip", str(Path(self.package_folder, "bin", name))]))


class UpstreamRecipes(ConanFile):
    name = "foundry-upstream"
    version = "1.0"
    package_type = "python-require"
