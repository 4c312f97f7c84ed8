"""Select the SDK for a command line: --sdk with a path or a word, or the variables of the vendor's README.

--sdk=PATH           this archive or folder; the variables are ignored
--sdk=environment    the SDK that the variables name; those of single files may be unset if the folder has the files
--sdk=reference      our own part; the variables are ignored
no --sdk             the SDK that the variables name, if all of them are set, with a notice; otherwise our own part,
                     with a notice if some of them are set
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolchains.config.vendors import VendorSdk
from toolchains.lockfile.lock import LockedTarget
from toolchains.system.console import Console
from toolchains.system.errors import UsageError

_ENVIRONMENT, REFERENCE = "environment", "reference"
_console = Console(stderr=True, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Given:
    """The options about an SDK.

    Attributes:
        path: the archive, or a folder.
        sha256: the required sha256, in lower case; any if empty.
        version: given if the folder's name does not have it.
        files: files of the SDK that are outside that folder, by their names in the SDK.
        word: the word on the command line that selects it, if it is not a path.
    """

    path: Path
    sha256: str = ""
    version: str = ""
    files: Mapping[str, Path] = field(default_factory=dict)
    word: str = ""

    @property
    def option(self) -> str:
        """Return the value of --sdk that selects it."""
        return self.word or str(self.path)


def select_sdk(
    target: LockedTarget, sdk: str, environ: Mapping[str, str], *, sha256: str = "", version: str = ""
) -> Given | None:
    """Return the vendor SDK that a command line selects; None for our own part.

    Args:
        target: the target of the command.
        sdk: the value of --sdk; empty if it is not given.
        environ: the environment variables.
        sha256: the required sha256 of the SDK.
        version: the version of the SDK.

    Raises:
        UsageError: the variables are incomplete or name what does not exist, or the target accepts no vendor SDK.
    """
    kind = VendorSdk.read(target.sdk) if target.sdk else None
    if sdk and kind is None:
        raise UsageError(f"{target.name} accepts no vendor SDK", next="leave out --sdk")
    if sdk and sdk not in (_ENVIRONMENT, REFERENCE):
        return Given(Path(sdk), sha256, version)
    given = None
    if kind and (sdk == _ENVIRONMENT or not sdk):
        given = _named(kind, environ, asked=bool(sdk), sha256=sha256, version=version)
    if given is None and (sha256 or version):
        raise UsageError("--sdk-sha256 and --sdk-version need a vendor's SDK", next="--sdk=PATH")
    return given


def is_named(target: LockedTarget, environ: Mapping[str, str]) -> bool:
    """Return whether the variables name an SDK, which a command line without --sdk would select."""
    variables = VendorSdk.read(target.sdk).environment if target.sdk else {}
    return bool(variables) and all(environ.get(variable) for variable in variables)


def _named(kind: VendorSdk, environ: Mapping[str, str], *, asked: bool, sha256: str, version: str) -> Given | None:
    """Return the SDK that the variables name; without --sdk=environment, only if all are set."""
    known = {variable: environ[variable] for variable in kind.environment if environ.get(variable)}
    missing = [variable for variable in kind.environment if variable not in known]
    main = next((variable for variable, name in kind.environment.items() if not name), "")
    if not asked and (missing or not known):
        if known:
            _console.print(
                f"not used: {_list(known)}, since {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set; "
                "--sdk=environment takes what there is"
            )
        return None
    if not main:
        raise UsageError(f"{kind.name} has no variables that name it", next="--sdk=PATH")
    if main not in known:
        raise UsageError(
            f"{main} is not set, which names the folder of {kind.name}", next=f"{main}=FOLDER, or --sdk=PATH"
        )
    folder = Path(known[main]).expanduser().absolute()
    if not folder.is_dir():
        raise UsageError(f"{main} names no folder: {folder}", next=f"correct {main}, or unset it")
    files = {}
    for variable, name in kind.environment.items():
        if name and variable in known:
            path = Path(known[variable]).expanduser().absolute()
            if not path.is_file():
                raise UsageError(f"{variable} names no file: {path}", next=f"correct {variable}, or unset it")
            # A file at its usual place needs no entry.
            if path != folder / name:
                files[name] = path
    _console.print(
        f"{kind.name} is taken from the environment: {_list(known)}"
        + "; --sdk=reference takes our own part" * (not asked)
    )
    return Given(folder, sha256, version, files, _ENVIRONMENT)


def _list(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
