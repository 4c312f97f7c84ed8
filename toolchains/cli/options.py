"""The options that several verbs have for a target's image: how invoke reads them, and their help.

toolchains/assembly/request.py creates a Request from their values.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """An option of verbs.

    Attributes:
        help: its line in the help of verbs that do not explain it; "" if they all do, or if another option's line names
            it.
        default: "" for an option with a value, False for one without, None for one with an optional value.
        several: whether the option may be given several times.
    """

    help: str = ""
    default: str | bool | None = ""
    several: bool = False


OPTIONS = {
    "triton": Option("--triton=3.6.0   another pinned release than the default one"),
    "offline": Option("--offline        do not use the network; list what is missing", False),
    "allow_drift": Option(
        "--allow-drift    take the current version of a locked package that the Debian archive no longer has", False
    ),
    "platform": Option(
        "--platform=linux/arm64   the image for another kind of processor than this machine's; see docs/platforms.md"
    ),
    "no_cache": Option(default=False),
    "gpus": Option(
        "--gpus=all       hand GPUs of this machine to the container, if the target takes them: all, a number or\n"
        "                 device=NAME for NVIDIA's; /dev/dri for AMD's and Intel's"
    ),
    "plugin": Option(
        "--plugin=PATH    use your plugin in this image: a wheel, a folder of wheels, or a folder with its sources;\n"
        "                 see docs/own-plugin.md"
    ),
    "sdk": Option("--sdk=PATH       the vendor's SDK in place of our own part; see `build`"),
    "sdk_sha256": Option(),
    "sdk_version": Option(),
    "from_source": Option(
        "--from-source[=NAMES], --source=NAME=PATH, --profile=NAME=PROFILE   as for `build`", default=None
    ),
    "source": Option(default=None, several=True),
    "profile": Option(default=None, several=True),
    "jobs": Option(),
    "compiler_cache": Option(),
}
JSON = Option("--json           print one JSON document and nothing else on stdout; see docs/scripts.md", False)
# Options that several verbs share.
IMAGE = ("triton", "offline", "allow_drift", "platform")
SOURCES = ("from_source", "source", "profile")


def signature(own: inspect.Signature, names: Sequence[str], *, needs_target: bool) -> inspect.Signature:
    """Return the signature by which invoke reads a verb's words, for a function with a parameter `request`.

    Args:
        own: the function's signature: the context, `request`, and the verb's own parameters.
        names: the options, from OPTIONS, that the request is made from.
        needs_target: whether the target is the first word; otherwise it is an option.
    """
    kind = inspect.Parameter.KEYWORD_ONLY
    context, *rest = own.parameters.values()
    target = inspect.Parameter("target", kind, default=inspect.Parameter.empty if needs_target else "")
    others = [parameter.replace(kind=kind) for parameter in rest if parameter.name != "request"]
    return inspect.Signature(
        [context, target, *others, *(inspect.Parameter(name, kind, default=OPTIONS[name].default) for name in names)]
    )


def with_json(own: inspect.Signature) -> inspect.Signature:
    """Return a verb's signature with the option --json."""
    option = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=JSON.default)
    return own.replace(parameters=[*own.parameters.values(), option])


def described(text: str, names: Sequence[str], *, json: bool = False) -> str:
    """Return a verb's help, followed by the lines of the options that its text does not explain."""
    text = inspect.cleandoc(text)
    own = set(re.findall(r"^--([\w-]+)", text, re.MULTILINE))
    lines = [OPTIONS[name].help for name in names if name.replace("_", "-") not in own] + [JSON.help] * json
    return "\n".join([text, "", *filter(None, lines)])
