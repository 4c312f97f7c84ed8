"""The verb `cache`: push parts built from source to a Conan remote, pull them, run conan-server, write conan.lock."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from toolchains.assembly.request import locked_target
from toolchains.config import components
from toolchains.engine import host
from toolchains.fetch.store import Store
from toolchains.fromsource import build, remote, server
from toolchains.fromsource.build import Wanted
from toolchains.fromsource.choice import TRITON, SourceChoice, projects_of
from toolchains.fromsource.remote import Moved
from toolchains.lockfile import lock
from toolchains.resolve import conan_lock
from toolchains.system import paths
from toolchains.system.console import Console
from toolchains.system.errors import AbsentError, PinError, UsageError

_console = Console(highlight=False, soft_wrap=True)


def cache(action: str, choice: SourceChoice, *, url: str, target: str, expect: str, port: int) -> None:
    """Run the verb `cache`."""
    if action in ("push", "pull") and not url:
        raise UsageError(f"`cache {action}` needs a remote", next="the same command with --remote=URL")
    if expect and action != "pull":
        raise UsageError("--expect is for `cache pull`", next="./foundry cache --help")
    store = Store(paths.cache())
    if action == "push":
        push(list(_wanted(choice, target)), url, store, named=bool(choice.names))
    elif action == "pull":
        pull(list(_wanted(choice, target)), url, expect, store)
    elif action == "serve":
        # The image with conan-server is that of a builder.
        builders = lock.load().builders
        suite = locked_target(target).suite if target else next(iter(builders), "")
        if suite not in builders:
            raise PinError("nothing is locked that conan-server is in", next="./foundry pin --update")
        server.serve(builders[suite], port=port, store=store, engine=host.ensure_engine())
    else:
        changed = conan_lock.write(store, host.ensure_engine())
        _console.print(f"{conan_lock.PATH.relative_to(paths.ROOT)} {'written' if changed else 'unchanged'}")


def push(wanted: list[Wanted], url: str, store: Store, *, named: bool) -> None:
    """Send those of these parts that the store has to a remote.

    Args:
        named: whether the user named the parts; then a missing one is an error.

    Raises:
        AbsentError: a named part, or every part, is not built here.
    """
    remote.check_remote_url(url)
    built = [want for want in wanted if store.has_part("upstream", want.identity)]
    absent = [want for want in wanted if want not in built]
    for want in absent:
        _console.print(f"{want.reference} for {want.builder.suite} has not been built here")
    if built:
        engine = host.ensure_engine()
        for want in built:
            done = remote.push(want, url, store=store, engine=engine)
            _say(done, want, f"pushed to {url}" if done.moved else f"{url} has it already")
    if absent and (named or not built):
        raise AbsentError(
            "not built here: " + ", ".join(want.reference for want in absent),
            next="./foundry upstream, for what there is",
        )


def pull(wanted: list[Wanted], url: str, expect: str, store: Store) -> None:
    """Download these parts unless the store has them. If the remote lacks one, download the parts that it requires.

    Raises:
        UsageError: one sha256 was given for several parts.
        AbsentError: the remote lacks some parts; the others are in the store.
    """
    remote.check_remote_url(url)
    if expect and len(wanted) != 1:
        raise UsageError(
            f"--expect is of one part, and these are {len(wanted)}", next="name it: --only=NAME --target=TARGET"
        )
    engine = host.ensure_engine()
    absent: list[AbsentError] = []
    for want in wanted:
        try:
            done = remote.pull(want, url, sha256=expect, store=store, engine=engine)
        except AbsentError as error:
            absent.append(error)
            _console.print(f"{want.reference} for {want.builder.suite}: {url} does not have it")
            if want.requires:
                try:
                    pull(list(want.requires), url, "", store)
                except AbsentError as further:
                    absent.append(further)
            continue
        _say(done, want, f"pulled from {url}" if done.moved else "was in the store already")
    if absent:
        raise AbsentError(
            f"{url} does not have all that this checkout would build",
            why="\n".join(f"{error.what}\n{error.why}" for error in absent),
            next=absent[0].next,
        )


def _say(done: Moved, want: Wanted, what: str) -> None:
    _console.print(Text(f"{want.reference}", "bold"), f"for {want.builder.suite}: {what}")
    _console.print(f"  sha256 {done.sha256}" + (f"\n  {done.package}" if done.package else ""))


def _wanted(choice: SourceChoice, target: str) -> Iterator[Wanted]:
    """Yield the wanted parts, once each: targets that would get the same part share it.

    Raises:
        UsageError: no target, or not this target, takes a project; or there is no such target.
        PinError: the source of a named project is not locked.
    """
    targets = (
        [locked_target(target)] if target else [user for user in lock.load().targets.values() if projects_of(user)]
    )
    unknown = [name for name in choice.names if not any(name in projects_of(user) for user in targets)]
    if unknown:
        raise UsageError(
            f"{f'{target} cannot take' if target else 'no target takes'} {', '.join(unknown)} from source",
            next="./foundry upstream",
        )
    seen: set[str] = set()
    for user in targets:
        for name in choice.names or components.target(user.name).upstreams:
            if name not in projects_of(user):
                continue
            try:
                want = build.describe_build(
                    name,
                    user.suite,
                    profiles={TRITON: user.default_triton, **choice.profiles},
                    folders=choice.folders,
                    llvm_targets=components.target(user.name).llvm_targets,
                )
            except PinError as error:
                if choice.names:
                    raise
                if error.what not in seen:
                    _console.print(f"left out: {error.what}")
                seen.add(error.what)
                continue
            if want.identity not in seen:
                seen.add(want.identity)
                yield want
