"""The command line of ./foundry: the overview of the verbs, their help, and errors about wrong words.

invoke loads tasks.py and parses the words. bootstrap.py calls it as `invoke --search-root ROOT foundry WORDS`. At the
word "foundry", invoke stops looking for its own options: with its option `--dry` it would print that nothing is run,
and run it anyway. In the activated environment, `invoke VERB` works too; invoke's options before the verb are then
accepted.
"""

from __future__ import annotations

import inspect
import io
import os
import re
import select
import shlex
import shutil
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from invoke.exceptions import Exit, ParseError
from invoke.parser.argument import Argument
from invoke.parser.context import ParserContext
from invoke.parser.parser import Parser
from invoke.program import Program

from toolchains.config import components
from toolchains.system import paths, waiting
from toolchains.system.console import Console, PrintableStream
from toolchains.system.errors import FoundryError, UsageError, nearest, suggestion

MARK = "foundry"
_HELP = ("--help", "-h")
_VERSION = "--version"
_OVERVIEW = (*_HELP, "help", "--list")
# What stands in the place of a script: a module, or a text of Python. invoke would take the word for an option, so it
# gets another one.
_PROGRAMS = {"-m": "python -m", "-c": "python -c"}
_passed: list[str] = []
# In a line of help: a name and the space before what is said of it.
_NAMED = re.compile(r" *\S+(?: \S+)*  +")
# How verbs are grouped in the overview, by what a user wants to do; @verb(group=...) puts one into a group.
GROUPS = {
    "use": "Build a target and use it",
    "trust": "Let others check what you built",
    "pack": "Run kernels without Triton",
    "source": "Build from source, and share what was built",
    "inputs": "Change what goes in",
    "project": "This machine, this repository",
}


class Foundry(Program):
    """invoke's Program, with our own overview, help and errors."""

    def parse_tasks(self) -> None:
        """Parse the words of the command line.

        Raises:
            Exit: help was printed, or the words are wrong and an error was printed; status 2.
        """
        prepare_streams()
        with end_quietly_if_unread():
            self._parse_tasks()

    def execute(self) -> None:
        """Run the verb."""
        with end_quietly_if_unread():
            super().execute()

    def _parse_tasks(self) -> None:
        words = list(self.core.unparsed)
        asked = self.args.help.value
        if words[:1] == [MARK]:
            # Only the verb's own options are accepted here, none of invoke's.
            words.pop(0)
            initial = ParserContext()
        else:
            initial = self.initial_context
            if isinstance(asked, str):
                words = [asked, _HELP[0]]
            elif not words:
                super().parse_tasks()
                return
        verb = self.collection.tasks.get(words[0]) if words else None
        if verb and (positional := getattr(verb.body, "passing", 0)):
            words = [words[0], *with_long_names(words[1:], verb.body, positional)]
            words = [words[0], *keep_script_words(words[1:], verb.body, positional, self.argv)]
        self._help(words)
        self._check_verb(words)
        self._check_values(words)
        words = self._completed(words)
        self.parser = Parser(initial=initial, contexts=self.collection.to_contexts())
        try:
            result = self.parser.parse_argv(words)
        except ParseError as error:
            refuse(self._explained(error, words))
        self.core_via_tasks = result.pop(0)
        self._update_core_context(self.core[0], self.core_via_tasks.args)
        self.tasks = result
        for context in self.tasks:
            self._check_names(context, words)

    def _completed(self, words: list[str]) -> list[str]:
        """Return the words, with an empty one in place of a missing one: invoke has no optional positional words.

        An unknown action gets one too, so that the error is about the action and not about a missing name.
        """
        body = self.collection[words[0]].body
        nameless: Sequence[str] = getattr(body, "nameless", ())
        bare = [words[1:][place] for place in _bare(words[1:], body)]
        if missing := getattr(body, "wordless", 0):
            # A word may be given as an option, too.
            flags = {word.partition("=")[0] for word in words}
            places = self.collection[words[0]].positional
            absent = len(places) - len(bare) - sum(f"--{each.replace('_', '-')}" in flags for each in places)
            return [*words, *[""] * absent] if 0 < absent <= missing else words
        named = {*body.actions} - {*nameless}
        return [*words, ""] if nameless and len(bare) == 1 and bare[0] not in named else words

    def print_help(self) -> None:
        """Print the verbs, grouped by the user's purpose."""
        print(wrapped("Triton Foundry: Triton on hardware that is not NVIDIA's, in reproducible containers.\n"))
        print("Usage: ./foundry VERB [TARGET] [options]")
        verbs = dict(sorted(self.collection.tasks.items()))
        groups = {name: getattr(task.body, "group", "") for name, task in verbs.items()}
        width = max(map(len, verbs))
        for group, title in {**GROUPS, "": "More"}.items():
            members = [name for name in verbs if groups[name] == group]
            if members:
                print(f"\n{title}:")
            for name in members:
                first = (inspect.getdoc(verbs[name]) or "").partition("\n\n")[0]
                print(wrapped(f"  {name:{width}}  {' '.join(first.split()).rstrip('.')}"))
        print(wrapped(f"\nTargets: {', '.join(components.names())}"))
        print(wrapped("\n./foundry help VERB explains a verb, with examples. To start: ./foundry e2e TARGET"))

    def list_tasks(self) -> None:
        """Print the same overview for `invoke --list`."""
        self.print_help()

    def print_task_help(self, name: str) -> None:
        """Print a verb's usage and its docstring, which has its options and examples."""
        print(f"Usage: {self._usage(name)} [options]\n")
        print(wrapped(inspect.getdoc(self.collection[name]) or ""))

    def _help(self, words: Sequence[str]) -> None:
        """Print help or the version and exit if the words ask for it: no words, `help VERB`, `VERB ... --help`."""
        if not words or (words[0] in _OVERVIEW and len(words) == 1):
            self.print_help()
            raise Exit
        if [*words] == [_VERSION]:
            print(f"Triton Foundry {paths.VERSION.read_text(encoding='utf-8').strip()}")
            raise Exit
        if words[0] in _OVERVIEW:
            words = [words[1], _HELP[0]]
        if any(word in _HELP for word in words[1:]):
            self._check_verb(words)
            self.print_task_help(words[0])
            raise Exit

    def _check_verb(self, words: Sequence[str]) -> None:
        name, *rest = words
        verbs = sorted(self.collection.task_names)
        if name in verbs:
            return
        if name.startswith("-"):
            verb = next((word for word in rest if word in verbs), "")
            after = [word for word in words if word != verb]
            remedy = _command([verb, *after]) if verb else "./foundry --help, which lists the verbs"
            refuse(UsageError(f"the first word must be a verb, and {name} is an option", next=remedy))
        near = nearest(name, verbs)
        what, known = f"there is no verb {name}{suggestion(name, verbs)}", f"known: {', '.join(verbs)}"
        refuse(UsageError(what, why=known, next=_command([near, *rest]) if near else "./foundry --help"))

    def _check_values(self, words: Sequence[str]) -> None:
        """Refuse unknown options, and values of options that take none: invoke may take either for a target."""
        arguments = self._arguments(words[0])
        before: Argument | None = None
        for word in words[1:]:
            flag, sign, _ = word.partition("=")
            argument = arguments.get(flag)
            is_value = before and before.takes_value and not before.optional
            if flag.startswith("--") and not argument and not is_value:
                refuse(self._unknown(words[0], flag, words))
            before = None if is_value or sign else argument
            if flag.startswith("--") and sign and argument and not argument.takes_value:
                refuse(UsageError(f"{flag} takes no value", next=_command([flag if w == word else w for w in words])))

    def _check_names(self, context: ParserContext, words: Sequence[str]) -> None:
        """Refuse an unknown target or action before anything is done."""
        for argument in context.args.values():
            known, value = self._known(str(context.name), str(argument.name)), argument.value
            if known and value and value not in known:
                near = nearest(value, known)
                corrected = [near if w == value else w.replace(f"={value}", f"={near}") for w in words if w]
                what = f"there is no {argument.name} {value}{suggestion(value, known)}"
                remedy = _command(corrected) if near else f"./foundry {context.name} --help"
                refuse(UsageError(what, why=f"known: {', '.join(known)}", next=remedy))

    def _explained(self, error: ParseError, words: Sequence[str]) -> UsageError:
        """Translate invoke's error about a word into one for our users."""
        text, context = str(error), error.context
        name = context.name if context and context.name else words[0]
        arguments = self._arguments(name)
        instructions = f"./foundry {name} --help"
        # invoke's errors have no types; only their messages tell them apart.
        if match := re.fullmatch(r"No idea what (.*) is!", text):
            word = match[1][1:-1]
            if word.startswith("-"):
                return self._unknown(name, word, words)
            return UsageError(
                f"{name} does not take the word {word!r}{suggestion(f'--{word}', list(arguments))}",
                why=f"it is called as {self._usage(name)}",
                next=instructions,
            )
        if match := re.fullmatch(r"(.*) is ambiguous when given after an optional-value flag", text):
            word = match[1][1:-1]
            rest = [w for w in words if w != word]
            return UsageError(
                f"{word!r} may be the option's value or what {name} is for",
                why="an option that may stand without a value takes one only with a sign: --option=VALUE",
                next=_command([rest[0], word, *rest[1:]]),
            )
        if match := re.match(r"Flag <Argument: ([\w-]+)", text):
            flag = f"--{match[1].replace('_', '-')}"
            return UsageError(f"{flag} needs a value: {flag}=VALUE", next=instructions)
        if missing := context.missing_positional_args if context else []:
            noun = str(missing[0].name)
            known = self._known(name, noun)
            return UsageError(
                f"{name} needs {'an' if noun[0] in 'aeiou' else 'a'} {noun}",
                why=f"known: {', '.join(known)}" if known else f"it is called as {self._usage(name)}",
                next=f"./foundry {name} {known[0]}" if known else instructions,
            )
        return UsageError(text, next=instructions)

    def _unknown(self, name: str, word: str, words: Sequence[str]) -> UsageError:
        """Return the error about an option that a verb does not have."""
        flags = sorted(flag for flag in self._arguments(name) if flag.startswith("--"))
        near = nearest(word, flags)
        corrected = [w.replace(word, near, 1) if w.partition("=")[0] == word else w for w in words]
        return UsageError(
            f"{name} has no option {word}{suggestion(word, flags)}",
            why=f"known: {', '.join(flags)}",
            next=_command(corrected) if near else f"./foundry {name} --help",
        )

    def _known(self, name: str, argument: str) -> Sequence[str]:
        """Return the allowed values of a verb's target or action; nothing for any other argument."""
        if argument == "target":
            return components.names()
        actions: Sequence[str] = getattr(self.collection[name].body, "actions", ())
        return actions if argument == "action" else ()

    def _usage(self, name: str) -> str:
        return " ".join(["./foundry", name, *self._places(name)])

    def _places(self, name: str) -> list[str]:
        """Return the names of a verb's positional words."""
        return [argument.name.upper() for argument in self.collection[name].get_arguments() if argument.positional]

    def _arguments(self, name: str) -> dict[str, Argument]:
        """Return a verb's options by their flags."""
        context = ParserContext(args=self.collection[name].get_arguments())
        return {flag: context.flags[flag] for flag in context.flags}


def script_words() -> list[str]:
    """Return the words that follow the script's name on the command line of this process."""
    return list(_passed)


def program(script: str) -> str:
    """Return -m or -c if one of them stands in the place of the script; "" if there is a script."""
    return next((word for word, stands in _PROGRAMS.items() if script == stands), "")


def keep_script_words(
    words: Sequence[str], verb: Callable[..., None], positional: int, argv: Sequence[str]
) -> list[str]:
    """Store the words after a verb's last positional word for script_words(); return the words up to it.

    Args:
        words: the words after the verb.
        positional: number of positional words that the verb takes.
        argv: the whole command line. It is needed because invoke joins the words after a "--" into one text.
    """
    own, rest = split_words(words, verb, positional)
    behind = list(argv[argv.index("--") + 1 :]) if "--" in argv else []
    # A "--" directly after the script is only a separator.
    _passed[:] = [*rest, *(["--"] if rest and behind else []), *behind]
    return own


def with_long_names(words: Sequence[str], verb: Callable[..., None], positional: int) -> list[str]:
    """Return a verb's words, with --profile-kernels in place of --profile without a value.

    --profile=NAME=PROFILE chooses the sources of a build.
    """
    short = {"--profile": "--profile-kernels"}
    switches = {f"--{name.replace('_', '-')}" for name in inspect.signature(verb).parameters}
    own = [short[word] if short.get(word) in switches else word for word in words]
    count = len(split_words(own, verb, positional)[0])
    return [*own[:count], *words[count:]]


def split_words(words: Sequence[str], verb: Callable[..., None], positional: int) -> tuple[list[str], list[str]]:
    """Return a verb's own words, up to its last positional one, and the words after them.

    An option that is not a switch takes the next word as its value, unless it has a sign: --with=PATH. In the place of
    the last positional word, -m and -c are this word, as in Python's command line, and the module or the code follows.
    """
    for place in _bare(words, verb):
        positional -= 1
        if not positional:
            return [*words[:place], _PROGRAMS.get(words[place], words[place])], list(words[place + 1 :])
    return list(words), []


def _bare(words: Sequence[str], verb: Callable[..., None]) -> Iterator[int]:
    """Return the places of words that are neither options nor their values; -m and -c are no options."""
    parameters = inspect.signature(verb).parameters.values()
    switches = {f"--{each.name.replace('_', '-')}" for each in parameters if isinstance(each.default, bool)}
    is_value = False
    for place, word in enumerate(words):
        is_option = word.startswith("-") and word not in _PROGRAMS
        if not is_value and not is_option:
            yield place
        is_value = not is_value and is_option and "=" not in word and word not in {*switches, "--help", "-h"}


def prepare_streams() -> None:
    """Let print() write no control characters, and a question mark for what the terminal's encoding does not have.

    A terminal gets the line of waiting.py.
    """
    for name in ("stdout", "stderr"):
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="replace")
            setattr(sys, name, PrintableStream(waiting.watched(stream)))


@contextmanager
def end_quietly_if_unread() -> Iterator[None]:
    """Exit quietly, like a program that SIGPIPE ends, when the output is no longer read: `./foundry ci | head -0`.

    Python ignores the signal, so that closed connections of other kinds do not end the process.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not is_output_closed():
            raise
        null = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            if _is_closed(stream):
                # The rest of a buffer is written at exit, which would fail again.
                os.dup2(null, stream)
        sys.exit(128 + signal.SIGPIPE)


def is_output_closed() -> bool:
    """Return whether stdout or stderr is a pipe without a reader."""
    return _is_closed(1) or _is_closed(2)


def _is_closed(stream: int) -> bool:
    poll = select.poll()
    poll.register(stream, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def refuse(error: FoundryError) -> NoReturn:
    """Print an error and exit with its status."""
    fail(f"error: {error}", error.exit_code)


def fail(text: str, status: int) -> NoReturn:
    """Print why a verb fails, and exit with a status."""
    Console(stderr=True, soft_wrap=True).print(text, style="bold red", highlight=False)
    sys.exit(status)


def wrapped(text: str) -> str:
    """Return a help text, with paragraphs that are wider than the terminal filled again; commands stay in one line."""
    width = shutil.get_terminal_size((sys.maxsize, 0)).columns
    lines = text.split("\n")
    indents = [len(line) - len(line.lstrip()) for line in lines]
    paragraphs: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines):
        named = _NAMED.match(line)
        last = paragraphs[-1] if paragraphs else (0, [""])
        if line.strip() and last[1][-1].strip() and indents[number] == last[0] and not named and not _is_command(line):
            last[1].append(line)
        else:
            below = indents[number + 1] if number + 1 < len(lines) else 0
            hang = indents[number] if not named else below if below > indents[number] else len(named[0])
            paragraphs.append((hang, [line]))
    shown = []
    for hang, part in paragraphs:
        if max(map(len, part)) > width and not _is_command(part[0]):
            filled = " ".join([part[0], *map(str.strip, part[1:])])
            indent = " " * min(hang, width // 2)
            part = textwrap.wrap(
                filled, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
            )
        shown += part
    return "\n".join(shown)


def _is_command(line: str) -> bool:
    return line.startswith("    ./foundry ")


def _command(words: Sequence[str]) -> str:
    return f"./foundry {shlex.join(words)}"
