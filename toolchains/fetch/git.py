"""Fetch commits of git repositories into a repository of our own, and list and read their trees.

Only the part of the user's git configuration about the connection is used: proxies, certificates, credentials, the ssh
command, and replaced addresses (url.*.insteadOf), by which users name their own mirrors. It cannot change the result,
because a commit is named by the hash of its content. The rest of the configuration is ignored: hooks, templates,
filters and attributes could run programs or change bytes. Files are read as objects, which attributes in the tree
(export-ignore, export-subst, line endings) do not change, and each is compared with its hash.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from toolchains.config.projects import GitPin
from toolchains.system.children import Completed, run, tool
from toolchains.system.errors import CommandError, FetchError, GoneError, HashMismatchError, PinError
from toolchains.system.paths import scratch

PROTOCOLS = ("https", "http", "ssh", "git")
# Keys of the user's configuration about the connection.
_CONNECTION = re.compile(
    r"(http|credential|url|ssh)\..*|core\.(sshcommand|gitproxy|askpass)|protocol\.version|safe\.directory", re.I
)
# Environment variables about the connection: agents and programs that know a password, and the configuration's path.
_ENVIRONMENT = re.compile(
    r"SSH_AUTH_SOCK|SSH_ASKPASS|GIT_ASKPASS|GIT_SSH|GIT_SSH_COMMAND|GIT_SSH_VARIANT|GIT_PROXY_COMMAND|GIT_SSL_\w+"
)
_CONFIGURATION = re.compile(r"XDG_CONFIG_HOME|GIT_CONFIG_\w+")
# Settings that are the same for everybody: only git's own programs run, nothing is rewritten, all objects are checked.
_SETTINGS = (
    ("core.hooksPath", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.quotePath", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("fetch.fsckObjects", "true"),
    ("transfer.fsckObjects", "true"),
    ("fetch.recurseSubmodules", "false"),
    ("advice.detachedHead", "false"),
)
# Names of branches and tags contain nothing that a refspec reads as a pattern, an expression or an option.
_REF = re.compile(r"(?!-)(?!.*\.\.)[^\s:+~^?*\[\\\x00-\x1f\x7f]+")
_FETCHED = "refs/foundry/fetched"

Say = Callable[[str], object]


@dataclass(frozen=True)
class TreeEntry:
    """A file, link or submodule of a tree: git's mode ("100644") and the hash of its content, or its commit."""

    mode: str
    hash: str

    @property
    def submodule(self) -> bool:
        """Return whether the entry is a commit of another repository."""
        return self.mode == "160000"

    @property
    def link(self) -> bool:
        """Return whether the entry is a symbolic link; its content is the link's target."""
        return self.mode == "120000"

    @property
    def executable(self) -> bool:
        """Return whether the entry is a file that its owner may execute."""
        return self.mode == "100755"


def check_git_url(url: str, where: str = "toolchains/upstreams") -> None:
    """Check that git fetches this address over a network, and that the address cannot make git run a program.

    The path of a folder is refused: a folder can only replace an address, by url.*.insteadOf in the user's
    configuration.

    Args:
        where: the file that has the address, for errors.

    Raises:
        PinError: the address is not valid.
    """
    scheme, separator, rest = url.partition("://")
    host = rest.partition("/")[0].rpartition("@")[2]
    if separator and scheme in PROTOCOLS:
        right = bool(host) and not host.startswith("-") and not rest.startswith("-")
    else:
        right = not separator and bool(re.fullmatch(r"(?!-)[\w.-]+@(?!-)[\w.-]+:(?![:-]).+", url))
    if not right or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise PinError(
            f"not an address to fetch from: {url!r}",
            why=f"it begins with {', '.join(f'{protocol}://' for protocol in PROTOCOLS)}, or is user@host:path",
            next=f"correct it in {where}",
        )


def resolve(pin: GitPin) -> str:
    """Return the current commit of the pin's tag or branch; only names are fetched.

    Raises:
        PinError: a repository answered, but has no such tag or branch.
        FetchError: no repository answered.
    """
    _check_ref(pin.ref)
    failures = []
    for url in pin.urls:
        check_git_url(url)
        try:
            answer = _git("ls-remote", "--quiet", "--", url, log="git-resolve", network=True).stdout
        except CommandError as error:
            failures.append(f"{url}: {_reason(error)}")
            continue
        heads = {name: hash for hash, _, name in (line.partition("\t") for line in answer.splitlines())}
        for name in (pin.ref, f"refs/tags/{pin.ref}", f"refs/heads/{pin.ref}"):
            # An annotated tag has its own hash; the name with ^{} has its commit's.
            commit = heads.get(f"{name}^{{}}") or heads.get(name)
            if commit:
                return commit
        raise PinError(
            f"{url} has neither a tag nor a branch {pin.ref}",
            next="correct ref in toolchains/upstreams, then: ./foundry pin --update",
        )
    raise FetchError(f"no repository answered for {pin.ref}", why="\n".join(failures), next=_NETWORK)


def fetch(
    urls: Sequence[str],
    commit: str,
    repository: Path,
    *,
    ref: str = "",
    where: str = "toolchains/upstreams",
    say: Say = print,
) -> None:
    """Create a repository with one commit and without its history.

    If a server does not provide commits by hash, the ref is fetched, and its commit is compared.

    Args:
        urls: tried in this order; each failure is printed.
        commit: 40 hexadecimal digits.
        repository: a folder, which is created.
        where: the file that has the addresses, for errors.
        say: called with failures on the way, and with git's progress.

    Raises:
        PinError: an address or the ref is malformed, or the hash is not a commit's.
        GoneError: repositories answered, but none has the commit.
        FetchError: no repository provided it; lists each one's error. This includes damaged data, which git refuses.
    """
    for url in urls:
        check_git_url(url, where)
    if ref:
        _check_ref(ref)
    create(repository)
    failures, answered = [], False
    for url in urls:
        try:
            _fetch_from(url, commit, repository, ref, say)
        except GoneError as error:
            answered = True
            failures.append(f"{url}: {error.why}")
        except CommandError as error:
            failures.append(f"{url}: {_reason(error)}")
        else:
            kind = _git("cat-file", "-t", commit, repository=repository, log="git-kind").stdout.strip()
            if kind != "commit":
                raise PinError(
                    f"{commit} is not a commit but a {kind}",
                    why="the hash of an annotated tag is not that of its commit",
                    next="correct commit in toolchains/upstreams",
                )
            return
        say(failures[-1])
    if answered:
        raise GoneError(
            f"commit {commit} cannot be fetched",
            why="\n".join(failures),
            next="add a mirror that has it to urls in toolchains/upstreams, or give a checkout: --source NAME=PATH",
        )
    raise FetchError(f"commit {commit} could not be fetched", why="\n".join(failures), next=_NETWORK)


_NETWORK = "check the network and git's configuration (proxies, insteadOf), or give a checkout: --source NAME=PATH"


def _fetch_from(url: str, commit: str, repository: Path, ref: str, say: Say) -> None:
    """Fetch from one address.

    Raises:
        GoneError: it has no such commit; or it provides none by hash and the ref is another commit. CommandError: git
            failed.
    """

    last: tuple[str, ...] = ()

    def show(text: str) -> None:
        # Of git's progress, "Receiving objects:  42% (5/12), 3.00 MiB", every tenth part.
        nonlocal last
        match = re.match(r"(Receiving objects|Resolving deltas): +(\d*)\d%", text)
        if match and match.groups() != last:
            last = match.groups()
            say(text)

    def get(what: str) -> None:
        words = ("--depth=1", "--no-tags", "--no-recurse-submodules", "--progress", "--", url, f"+{what}:{_FETCHED}")
        _git("fetch", *words, repository=repository, log="git-fetch", network=True, line=show)

    try:
        get(commit)
        return
    except CommandError as error:
        reason = _reason(error)
        if not re.search(r"not our ref|unadvertised object|remote ref .* not found|couldn't find remote ref", reason):
            raise
    if not ref:
        raise GoneError(
            "", why=f"it does not have the commit, or gives none by hash ({reason}); it would be asked for a ref"
        )
    get(ref)
    fetched = _git("rev-parse", f"{_FETCHED}^{{commit}}", repository=repository, log="git-fetched").stdout.strip()
    if fetched != commit:
        raise GoneError("", why=f"it does not give the commit by hash ({reason}), and its {ref} is at {fetched}")


def create(repository: Path, *, alternate: Path | None = None, format: str = "sha1") -> None:
    """Create an empty repository.

    Args:
        alternate: a folder of git objects that the repository also uses.
        format: git's name of the hash function that names objects.
    """
    _git("init", "--bare", "--quiet", "--template=", f"--object-format={format}", "--", repository, log="git-init")
    if alternate:
        (repository / "objects" / "info").mkdir(parents=True, exist_ok=True)
        (repository / "objects" / "info" / "alternates").write_text(f"{alternate}\n")


def check_tree(repository: Path, commit: str, tree: str) -> None:
    """Compare the hash of a commit's tree with the pinned one.

    Raises:
        HashMismatchError: they differ.
    """
    actual = _git("rev-parse", f"{commit}^{{tree}}", repository=repository, log="git-tree").stdout.strip()
    if actual != tree:
        raise HashMismatchError(
            f"the tree of commit {commit} is not the pinned one",
            why=f"tree   {actual}\npinned {tree}",
            next="correct tree or commit in toolchains/upstreams: one of them is of another commit",
        )


def commit_entries(commit: str, *, repository: Path | None = None, work: Path | None = None) -> dict[str, TreeEntry]:
    """Return all entries of a commit's tree by path: files, links and submodules, but no folders.

    Characters of a path that are not UTF-8 become U+FFFD.

    Args:
        repository, work: our repository that has the commit, or the user's working tree.
    """
    words = ("-r", "-z", "--full-tree", commit)
    listing = _git("ls-tree", *words, repository=repository, work=work, log="git-tree").stdout
    entries = {}
    for line in listing.split("\0")[:-1]:
        fields, _, path = line.partition("\t")
        mode, _, hash = fields.split()
        entries[path] = TreeEntry(mode, hash)
    return entries


def contents(repository: Path, entries: Mapping[str, TreeEntry], called: str) -> Iterator[tuple[str, bytes]]:
    """Yield the paths of files and links with their contents, in order.

    Args:
        called: what the entries belong to, for errors.

    Raises:
        HashMismatchError: the repository lacks a content, or has a damaged one.
    """
    with TemporaryDirectory(prefix="foundry-", dir=scratch()) as work:
        asked, answers = Path(work, "asked"), Path(work, "answers")
        asked.write_text("".join(f"{entry.hash}\n" for entry in entries.values()))
        _git("cat-file", "--batch", "--buffer", repository=repository, log="git-contents", input=asked, output=answers)
        with answers.open("rb") as file:
            for path, entry in entries.items():
                # The format is "HASH blob SIZE", the content and a newline; or "HASH missing".
                _, kind, *size = file.readline().split()
                content = file.read(int(size[0])) if size else b""
                file.read(len(size))
                algorithm = "sha1" if len(entry.hash) == 40 else "sha256"
                if hashlib.new(algorithm, b"%b %d\0%b" % (kind, len(content), content)).hexdigest() != entry.hash:
                    raise HashMismatchError(
                        f"{path} of {called} is not what its commit has",
                        why="" if size else f"the repository does not have the object {entry.hash}",
                    )
                yield path, content


def submodule_urls(repository: Path, commit: str, urls: Sequence[str]) -> dict[str, list[str]]:
    """Return the addresses of a commit's submodules, by path, from its .gitmodules.

    Args:
        urls: the addresses of the repository itself, to which relative addresses refer.
    """
    words = ("-z", f"--blob={commit}:.gitmodules", "--get-regexp", r"^submodule\..*\.(path|url)$")
    answer = _git("config", *words, repository=repository, log="git-modules", check=False).stdout
    modules: dict[str, dict[str, str]] = {}
    for entry in answer.split("\0")[:-1]:
        key, _, value = entry.partition("\n")
        name, _, what = key.rpartition(".")
        modules.setdefault(name, {})[what] = value
    addresses = {}
    for module in modules.values():
        if {"path", "url"} <= module.keys():
            url = module["url"]
            relative = url.startswith(("./", "../"))
            addresses[posixpath.normpath(module["path"])] = [_joined(base, url) for base in urls] if relative else [url]
    return addresses


def _joined(base: str, relative: str) -> str:
    """Return the address of a submodule with a relative address, by the rules of git-submodule(1)."""
    base = base.rstrip("/")
    while relative.startswith(("./", "../")):
        step, _, relative = relative.partition("/")
        if step == "..":
            head, slash, _ = base.rpartition("/")
            # git@host:project.git has only a colon before its last part.
            base = head if slash else base.rpartition(":")[0]
    colon = "/" if "/" in base or ":" in base else ":"
    return f"{base}{colon}{relative}"


@dataclass(frozen=True)
class Checkout:
    """A user's working tree.

    Attributes:
        path: its topmost folder.
        commit: the commit that is checked out; empty if there is none yet.
        changes: the paths of files that differ from the commit's, and of files that the commit does not have.
        objects: the folder with the repository's objects.
        format: git's name of the hash function that names objects.
    """

    path: Path
    commit: str
    changes: tuple[str, ...]
    objects: Path
    format: str


def checkout(path: Path) -> Checkout | None:
    """Return a folder's working tree; None if it is not the topmost folder of one.

    Changes in submodules are not included.
    """
    if not (path / ".git").exists():
        return None
    try:
        words = ("--path-format=absolute", "--show-toplevel", "--git-path", "objects", "--show-object-format")
        answer = _git("rev-parse", *words, work=path, log="git-checkout").stdout
    except CommandError:
        return None
    top, objects, format = answer.splitlines()
    if Path(top).resolve() != path.resolve():
        return None
    head = _git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", work=path, log="git-head", check=False).stdout
    words = ("--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames")
    status = _git("status", *words, work=path, log="git-status").stdout
    # Each path follows two letters and a blank.
    changes = tuple(entry[3:].rstrip("/") for entry in status.split("\0")[:-1])
    return Checkout(path, head.strip(), changes, Path(objects), format)


def working_files(path: Path) -> Iterator[str]:
    """Yield the files and links of a working tree that git does not ignore, as they are now.

    A folder among them is another repository.
    """
    listing = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard", work=path, log="git-files").stdout
    for name in sorted(set(listing.split("\0")[:-1])):
        if os.path.lexists(path / name):
            yield name.rstrip("/")


def _git(
    verb: str,
    *words: str | Path,
    log: str,
    repository: Path | None = None,
    work: Path | None = None,
    network: bool = False,
    **options: Any,
) -> Completed:
    """Run git in our bare repository, in the user's working tree, or in neither; `options` are those of run."""
    settings = [*_SETTINGS]
    if network:
        # The settings about the connection from the user's own configuration. GIT_DIR excludes any repository's.
        own = {name: value for name, value in os.environ.items() if _CONFIGURATION.fullmatch(name)}
        argv = [tool("git", package="git"), "config", "--list", "-z", "--includes"]
        own |= {"GIT_DIR": "/dev/null"}
        printed = run(argv, log="git-config", env=own, check=False, cwd=Path("/")).stdout
        entries = [entry.partition("\n") for entry in printed.split("\0")[:-1]]
        # A key without a value means true.
        known = [(key, value if sign else "true") for key, sign, value in entries if _CONNECTION.fullmatch(key)]
        settings = [*known, *_SETTINGS]
    where: list[str | Path] = [f"--git-dir={repository}"] if repository else []
    if work:
        where = ["-C", work]
        # The user names this folder; otherwise git refuses a folder that belongs to another user.
        settings.append(("safe.directory", "*"))
    mirrors = any(re.match(r"url\.(/|file:).*\.insteadof$", key, re.IGNORECASE) for key, _ in settings)
    protocols = (*PROTOCOLS, "file") if mirrors else PROTOCOLS
    env = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_ALLOW_PROTOCOL": ":".join(protocols),
        # Nobody can answer a prompt.
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for number, (key, value) in enumerate(settings):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    if network:
        env |= {name: value for name, value in os.environ.items() if _ENVIRONMENT.fullmatch(name)}
        if not any(name in env for name in ("GIT_SSH", "GIT_SSH_COMMAND")) and "core.sshcommand" not in dict(settings):
            env["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes"
    command = [tool("git", package="git"), *where, verb, *words]
    return run(command, log=log, env=env, network=network, cwd=None if work else Path("/"), **options)


def _check_ref(ref: str) -> None:
    if not _REF.fullmatch(ref):
        raise PinError(f"not the name of a tag or a branch: {ref!r}", next="correct ref in toolchains/upstreams")


def _reason(error: CommandError) -> str:
    """Return git's message about a failure, without its progress."""
    lines = [line for line in error.why.splitlines() if not re.match(r"(remote: )?[\w ]+: +\d+|\(whole output", line)]
    messages = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))] or lines
    return "; ".join(line.strip() for line in messages) or error.what
