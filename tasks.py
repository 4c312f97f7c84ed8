"""The verbs of Triton Foundry, a few lines each; the work is done in toolchains/.

Run them as `./foundry VERB ...`, or `invoke VERB ...` once ./foundry has made .venv.
"""

from __future__ import annotations

from invoke.context import Context

from toolchains.verb import verb


@verb(optional=["update"])
def pin(c: Context, update: str | None = None, check: bool = False, fetch: bool = False, offline: bool = False) -> None:
    """What is pinned, and what it resolved to; changes nothing unless told to.

    --update[=NAME]  resolve the pins against the archives as they are now, all or one component; show what changed
    --check          verify that pins, lock and files agree, and the LLVM commit inside each Triton
    --fetch          bring all files of the lock into the store, for building without a network
    --offline        do not use the network; say what is missing
    """
    from toolchains import pinning

    pinning.act(update=update, check=check, fetch=fetch, offline=offline)


@verb
def patch(c: Context, action: str, triton: str = "", tree: str = "", into: str = "") -> None:
    """The patches to Triton: `patch status`, `patch apply`, `patch refresh`.

    status   which patches of which release are applied to, or would apply to, its wheel (or --tree)
    apply    patch --tree; without it the release's wheel is unpacked under build/ first, to edit there
    refresh  rewrite the patches so that they fit the release's wheel exactly, and number the series; with --tree, an
             edited tree that has the whole series, take the edits into the patch --into (the last one by default)
    """
    from toolchains import patching

    patching.act(action, release=triton, tree=tree, into=into)


@verb
def doctor(c: Context) -> None:
    """What this machine must have, what of it was found, and what to type for what is missing."""
    from toolchains import host

    host.doctor()
