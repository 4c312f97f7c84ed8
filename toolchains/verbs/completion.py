"""The verb completion: print the script by which a shell completes verbs, targets, releases, options and files.

The script is made from the declared verbs and has all words in it: a TAB starts no process. bash has its logic in a
function below; zsh and fish complete by themselves what is declared to them.
"""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from invoke.collection import Collection

from toolchains.config import components
from toolchains.lockfile import lock
from toolchains.system import paths

# How help writes the value of an option that is a file or a folder.
_FILE = re.compile(r"(.*=)?(PATH|DIR|FOLDER|KEY|FILE(\.pub)?)")
_TARGET = ("target", "like")
_BASH = r"""
_foundry() {
    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb= option= place=0 word i places
    local targets='@TARGETS@' releases='@ALL@' words='@VERBS@' options= files=
    [[ ${1##*/} == foundry || $PWD/ == @ROOT@/* ]] || { compopt -o default; return; }
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        # bash makes three words of --option=value. A value may also be the word after its option.
        if [[ $word == = ]]; then ((i++))
        elif [[ " $options " == *" $word= "* && ${COMP_WORDS[i+1]} != = ]]; then ((i++))
        elif [[ $word == -* ]]; then :
        elif [[ -z $verb ]]; then
            verb=$word words=
            case $verb in
@CASES@
            esac
        else
            ((++place))
            case $word in
@RELEASES@
            esac
        fi
    done
    if [[ $cur == = ]]; then option=$before cur=
    elif [[ $before == = ]]; then option=${COMP_WORDS[COMP_CWORD-2]}
    elif [[ " $options " == *" $before= "* ]]; then option=$before
    fi
    COMPREPLY=()
    if [[ -n $option ]]; then
        case $option in
            --triton) words=$releases ;;
            --target | --like) words=$targets ;;
            *) [[ " $files " == *" $option "* ]] && compopt -o default; return 0 ;;
        esac
    elif [[ $cur == -* ]]; then
        words=$options
    elif [[ -n $verb ]]; then
        IFS='|' read -ra places <<<"$words"
        words=${places[place]}
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace
    elif [[ ${#COMPREPLY[@]} == 0 && -n $verb && -z $option && $cur != -* ]]; then compopt -o default
    fi
}
complete -F _foundry foundry
complete -p invoke &>/dev/null || complete -F _foundry invoke inv
"""
_ZSH = """#compdef foundry
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit }}
_foundry() {{
    local -a verbs
    verbs=({verbs})
    if (( CURRENT == 2 )); then _describe verb verbs; return; fi
    shift words; (( CURRENT-- ))
    case $words[1] in
{cases}
        *) _files ;;
    esac
}}
compdef _foundry foundry
"""


@dataclass(frozen=True)
class Verb:
    """What follows a verb.

    Attributes:
        name: the verb.
        summary: the first line of its help.
        places: for each word without a dash, the words that are known; none for files.
        options: by name, "switch", "target", "triton", "file" or "value".
    """

    name: str
    summary: str
    places: tuple[tuple[str, ...], ...]
    options: dict[str, str]


def completion(shell: str) -> None:
    """Print the script for bash, zsh or fish."""
    print({"bash": bash, "zsh": zsh, "fish": fish}[shell]().strip())


def verbs() -> Iterator[Verb]:
    """Yield the verbs of tasks.py, which is above this package."""
    for name, task in sorted(Collection.from_module(import_module("tasks")).tasks.items()):
        arguments = task.get_arguments()
        text = inspect.getdoc(task) or ""
        known = {"action": tuple(getattr(task.body, "actions", ())), "target": tuple(components.names())}
        known["what"] = known["name"] = known["target"]
        places = tuple(known.get(str(each.name), ()) for each in arguments if each.positional)
        options = {
            f"{each.name}".rstrip("_").replace("_", "-"): _kind(each, text) for each in arguments if not each.positional
        }
        yield Verb(name, " ".join(text.partition("\n\n")[0].split()).rstrip("."), places, options)


def _kind(argument: Any, text: str) -> str:
    name = str(argument.name).rstrip("_").replace("_", "-")
    if not argument.takes_value:
        return "switch"
    if name == "triton" or name in _TARGET:
        return "triton" if name == "triton" else "target"
    # The line of the option, and not an example of its use.
    shown = re.search(rf"^(?:--.*, )?--{name}\[?=([^\s\],]+)", text, re.MULTILINE)
    return "file" if shown and _FILE.fullmatch(shown[1]) else "value"


def releases() -> dict[str, list[str]]:
    """Return the releases of Triton of each target."""
    return {name: sorted(target.tritons, reverse=True) for name, target in sorted(lock.load().targets.items())}


def bash() -> str:
    """Return the script for bash."""
    cases = []
    for verb in verbs():
        flags = [f"--{name}{'' if kind == 'switch' else '='}" for name, kind in verb.options.items()]
        files = [f"--{name}" for name, kind in verb.options.items() if kind == "file"]
        words = "|".join(" ".join(place) for place in verb.places)
        cases.append(
            f"                {verb.name}) words='{words}' options='{' '.join(flags)}' files='{' '.join(files)}' ;;"
        )
    of = [f"                {name}) releases='{' '.join(found)}' ;;" for name, found in releases().items()]
    values = {
        "ROOT": shlex.quote(str(paths.ROOT)),
        "TARGETS": " ".join(components.names()),
        "ALL": " ".join(_all()),
        "RELEASES": "\n".join(of),
        "VERBS": " ".join(verb.name for verb in verbs()),
        "CASES": "\n".join(cases),
    }
    return re.sub("@([A-Z]+)@", lambda match: values[match[1]], _BASH)


def zsh() -> str:
    """Return the script for zsh."""
    actions = {"switch": "", "file": ":file:_files", "value": ":value: ", "triton": f":release:({' '.join(_all())})"}
    actions["target"] = f":target:({' '.join(components.names())})"
    cases = []
    for verb in verbs():
        words = [f"--{name}{'' if kind == 'switch' else '='}{actions[kind]}" for name, kind in verb.options.items()]
        for number, place in enumerate(verb.places, 1):
            words.append(f"{number}:word:({' '.join(place)})" if place else f"{number}:file:_files")
        cases.append(f"        {verb.name}) _arguments {shlex.join([*words, '*:file:_files'])} ;;")
    names = shlex.join(f"{verb.name}:{verb.summary}" for verb in verbs())
    return _ZSH.format(verbs=names, cases="\n".join(cases))


def fish() -> str:
    """Return the script for fish."""
    values = {"switch": "", "file": "-r -F", "value": "-x", "triton": f"-x -a '{' '.join(_all())}'"}
    values["target"] = f"-x -a '{' '.join(components.names())}'"
    lines = []
    for verb in verbs():
        summary = "'" + verb.summary.replace("\\", "\\\\").replace("'", "\\'") + "'"
        lines.append(f"complete -c foundry -n __fish_use_subcommand -f -a {verb.name} -d {summary}")
        seen = f"complete -c foundry -n '__fish_seen_subcommand_from {verb.name}'"
        if words := [word for place in verb.places for word in place]:
            lines.append(f"{seen} -a '{' '.join(dict.fromkeys(words))}'")
        lines += [f"{seen} -l {name} {values[kind]}".rstrip() for name, kind in verb.options.items()]
    return "\n".join(lines)


def _all() -> list[str]:
    return sorted({version for found in releases().values() for version in found}, reverse=True)
