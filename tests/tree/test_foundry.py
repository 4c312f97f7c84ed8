"""./foundry in isolation: a copy of it, a made-up lock, and a PATH that contains only what the test puts there."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest
from archive_files import wheel

from toolchains.system import paths

# Most of these tests create environments with venv and pip.
pytestmark = pytest.mark.slow

# A venv whose environments have the pip of this process, by links. Python's own takes seconds to unpack its pip.
VENV = """
import importlib.util, os, sys, sysconfig

place = os.path.join(sysconfig.get_path("stdlib"), "venv", "__init__.py")
spec = importlib.util.spec_from_file_location("real_venv", place)
real = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real)


class Builder(real.EnvBuilder):
    def _setup_pip(self, context):
        version = "python%d.%d" % sys.version_info[:2]
        for path in {pip}:
            os.symlink(path, os.path.join(context.env_dir, "lib", version, "site-packages", os.path.basename(path)))


if __name__ == "__main__":
    real.EnvBuilder = Builder
    real.main()
"""
# Prints what it was called with, in place of the real invoke.
INVOKE = "import sys\n\nprint('invoke', *sys.argv[1:])\n"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with one wheel: an invoke that only prints its arguments. Beside it is the quick venv."""
    folder = wheel(tmp_path_factory.mktemp("index"), "invoke", "1.0", files={"invoke/__main__.py": INVOKE}).parent
    pip = importlib.metadata.distribution("pip")
    links = [str(pip.locate_file(name)) for name in ("pip", f"pip-{pip.version}.dist-info")]
    (folder / "venv.py").write_text(VENV.replace("{pip}", repr(links)))
    return folder


def write_project(root: Path, index: Path) -> Path:
    (root / "toolchains" / "cli").mkdir(parents=True)
    shutil.copy(paths.ROOT / "foundry", root)
    shutil.copy(paths.ROOT / "toolchains" / "cli" / "bootstrap.py", root / "toolchains" / "cli")
    write_lock(root, index)
    return root


@pytest.fixture
def project(tmp_path: Path, index: Path) -> Path:
    return write_project(tmp_path / "project", index)


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory, index: Path) -> Path:
    """Return a project after its first call. A test that changes it leaves a valid environment, or none."""
    root = write_project(tmp_path_factory.mktemp("called") / "project", index)
    # By the venv of Python itself.
    env = environment(index, PYTHONPATH="")
    status, stdout, stderr = foundry(root, env, "e2e", "spirv", "--triton", "3.6.0")
    assert (status, stdout) == (0, f"invoke --search-root {root} foundry e2e spirv --triton 3.6.0\n"), stderr
    assert "making .venv" in stderr
    return root


def write_lock(root: Path, index: Path, comment: str = "", sha256: str = "") -> None:
    (root / "requirements.lock").write_text(comment + lock_line(index, sha256))


def lock_line(index: Path, digest: str = "") -> str:
    return f"invoke==1.0 --hash=sha256:{digest or sha256(index / 'invoke-1.0-py3-none-any.whl')}\n"


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def environment(index: Path, **more: str) -> dict[str, str]:
    """Return the machine's environment with the quick venv and a pip that knows only the made-up wheel.

    It has no permissions of CI.
    """
    left_out = ("PIP_", "FOUNDRY_", "CI", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    own = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": os.devnull, "PYTHONPATH": str(index)}
    return kept | own | more


def start(project: Path, env: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    pipe, argv = subprocess.PIPE, [str(project / "foundry"), *arguments]
    return subprocess.Popen(argv, env=env, text=True, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)


def foundry(project: Path, env: Mapping[str, str], *arguments: str) -> tuple[int, str, str]:
    child = start(project, env, *arguments)
    stdout, stderr = child.communicate()
    return child.returncode, stdout, stderr


def test_the_first_call_makes_the_environment_and_the_second_uses_it(called: Path, index: Path) -> None:
    assert foundry(called, environment(index)) == (0, f"invoke --search-root {called} foundry\n", "")


def test_several_processes_install_what_is_locked_and_a_failure_of_one_is_reported(
    project: Path, index: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(index, tmp_path / "larger")
    made = [wheel(folder, f"madeup{number}", "1.0") for number in range(4)]
    locked = [f"{file.name.split('-')[0]}==1.0 \\\n    --hash=sha256:{sha256(file)}\n" for file in made]
    (project / "requirements.lock").write_text("# A comment.\n" + "".join(locked) + lock_line(index))
    env = environment(folder)
    assert foundry(project, env)[0] == 0
    (packages,) = (project / ".venv" / "lib").glob("python*/site-packages")
    assert len(list(packages.glob("madeup*.dist-info"))) == 4
    made[2].write_bytes(b"other")
    (project / "requirements.lock").write_text("# Another.\n" + "".join(locked) + lock_line(index))
    status, _, stderr = foundry(project, env)
    assert status == 3 and "error: .venv could not be made: pip failed" in stderr and "madeup2" in stderr
    assert "next: check network, proxy" in stderr
    assert len(list(packages.glob("madeup*.dist-info"))) == 4


def test_link_and_folder_with_another_invoke_do_not_mislead(called: Path, index: Path, tmp_path: Path) -> None:
    (tmp_path / "invoke.py").write_text("print('the wrong one')\n")
    (tmp_path / "link").symlink_to(called / "foundry")
    done = subprocess.run(
        [tmp_path / "link", "doctor", "a  b"], cwd=tmp_path, env=environment(index), capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"invoke --search-root {called} foundry doctor a  b\n"), done.stderr


@pytest.mark.parametrize("damage", ["python is gone", "python leads nowhere"])
def test_an_environment_without_a_python_is_made_again(called: Path, index: Path, damage: str) -> None:
    env = environment(index)
    python = called / ".venv" / "bin" / "python"
    python.unlink()
    if damage == "python leads nowhere":
        python.symlink_to("/no/such/python")
    status, stdout, stderr = foundry(called, env)
    assert (status, stdout) == (0, f"invoke --search-root {called} foundry\n"), stderr
    assert "making .venv" in stderr


def test_an_activated_environment_is_used_and_made_again_only_for_another_lock(called: Path, index: Path) -> None:
    env = environment(index)
    active = env | {"PATH": f"{called}/.venv/bin:{env['PATH']}", "VIRTUAL_ENV": f"{called}/.venv"}
    assert foundry(called, active) == (0, f"invoke --search-root {called} foundry\n", "")
    # The environment's own Python can replace the environment.
    (called / ".venv" / "of-the-old-lock").touch()
    write_lock(called, index, comment="# changed\n")
    status, _, stderr = foundry(called, active)
    assert (status, stderr) == (0, "making .venv from requirements.lock\n")
    assert not (called / ".venv" / "of-the-old-lock").exists()
    assert foundry(called, env) == (0, f"invoke --search-root {called} foundry\n", "")


def test_another_python_on_the_path_changes_nothing(called: Path, index: Path, tmp_path: Path) -> None:
    env = environment(index)
    assert foundry(called, env)[0] == 0
    before = (called / ".venv" / "bin" / "python").resolve()
    # The same Python as a program of another path.
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    shutil.copy(before, other)
    (tmp_path / "lib").symlink_to(Path(sysconfig.get_path("stdlib")).parent)
    first = env | {"PATH": f"{other.parent}:{env['PATH']}"}
    assert foundry(called, first) == (0, f"invoke --search-root {called} foundry\n", "")
    # What is made again keeps it, too; one that is gone is replaced.
    write_lock(called, index, comment="# changed again\n")
    assert foundry(called, first)[2] == "making .venv from requirements.lock\n"
    assert (called / ".venv" / "bin" / "python").resolve() == before
    stamp = called / ".venv" / "foundry.stamp"
    stamp.write_text(stamp.read_text().replace(str(before), f"{tmp_path}/gone"))
    assert foundry(called, first)[2] == "making .venv from requirements.lock\n"
    assert (called / ".venv" / "bin" / "python").resolve() == other
    shutil.rmtree(called / ".venv")


def test_the_environment_before_is_used_until_the_new_one_is_complete(called: Path, index: Path) -> None:
    env = environment(index)
    assert foundry(called, env)[0] == 0
    python = called / ".venv" / "bin" / "python"
    # pip does not find the wheel, so that the new one is never complete.
    write_lock(called, index, comment="# and again\n")
    assert foundry(called, env | {"PIP_FIND_LINKS": "/nowhere"})[0] == 3
    assert subprocess.run([python, "-c", "import invoke"], check=False).returncode == 0
    assert foundry(called, env)[0] == 0
    # Programs in it start with its final path.
    assert not any(b".venv.new" in file.read_bytes() for file in (called / ".venv" / "bin").iterdir())
    assert not (called / ".venv.new").exists() and not (called / ".venv.old").exists()


def test_a_checkout_at_another_path_makes_its_environment_again(called: Path, index: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(called, tmp_path / "moved", symlinks=True))
    status, stdout, stderr = foundry(moved, environment(index))
    assert (status, stdout) == (0, f"invoke --search-root {moved} foundry\n")
    assert "making .venv" in stderr


def test_linked_environment_is_used_and_never_emptied(called: Path, index: Path, tmp_path: Path) -> None:
    env = environment(index)
    worktree = Path(shutil.copytree(called, tmp_path / "worktree", ignore=shutil.ignore_patterns(".venv")))
    (worktree / ".venv").symlink_to(called / ".venv")
    assert foundry(worktree, env) == (0, f"invoke --search-root {worktree} foundry\n", "")
    write_lock(worktree, index, comment="# another\n")
    status, _, stderr = foundry(worktree, env)
    assert status == 0, stderr
    assert not (worktree / ".venv").is_symlink()
    assert foundry(called, env) == (0, f"invoke --search-root {called} foundry\n", "")


def test_a_package_with_another_hash_than_locked_is_refused_every_time(project: Path, index: Path) -> None:
    write_lock(project, index, sha256="0" * 64)
    for _ in range(2):
        status, stdout, stderr = foundry(project, environment(index))
        assert (status, stdout) == (3, "")
        assert "DO NOT MATCH THE HASHES" in stderr


def test_two_that_start_at_once_make_one_environment(project: Path, index: Path) -> None:
    children = [start(project, environment(index), word) for word in ("one", "two")]
    printed = [child.communicate() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert [stdout.split()[-1] for stdout, _ in printed] == ["one", "two"]
    assert sum(stderr.count("making .venv") for _, stderr in printed) == 1


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Make a PATH without a Python, on which apt-get records its arguments and id answers root."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in ("dirname", "readlink", "sh"):
        (folder / program).symlink_to(str(shutil.which(program)))
    base = Path(sysconfig.get_config_var("BINDIR")) / f"python{sysconfig.get_python_version()}"
    install = f"{shutil.which('ln')} -s {base} {folder}/python3"
    scripts = {
        "id": "echo 0",
        "apt-get": f'echo "$@" >> {tmp_path}/calls\n[ "$1" = install ] && {install}\ntrue',
    }
    for name, script in scripts.items():
        (folder / name).write_text(f"#!{shutil.which('sh')}\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


def test_missing_python_is_named_without_permission(project: Path, index: Path, bare: Path, tmp_path: Path) -> None:
    status, _, stderr = foundry(project, environment(index, PATH=str(bare)), "doctor")
    assert status == 4
    assert "apt-get install -y --no-install-recommends python3 python3-venv" in stderr
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize("permission", ["--yes doctor", "doctor --yes", "CI"])
def test_missing_python_is_installed(project: Path, index: Path, bare: Path, tmp_path: Path, permission: str) -> None:
    # The script starts this file when it has found a Python. What the real file does is tested above.
    (project / "toolchains" / "cli" / "bootstrap.py").write_text("import sys\n\nprint(*sys.argv[1:])\n")
    env = environment(index, PATH=str(bare), **({"CI": "true"} if permission == "CI" else {}))
    arguments = ["doctor"] if permission == "CI" else permission.split()
    status, stdout, stderr = foundry(project, env, *arguments)
    assert (status, stdout) == (0, "doctor\n"), stderr
    assert (tmp_path / "calls").read_text().splitlines() == [
        "update",
        "install -y --no-install-recommends python3 python3-venv",
    ]


def test_the_real_lock_gives_every_package_a_hash_and_no_address() -> None:
    lines = (paths.ROOT / "requirements.lock").read_text().replace("\\\n", " ").splitlines()
    packages = [line for line in lines if line.strip() and not line.startswith("#")]
    assert packages
    assert [line for line in packages if "--hash=sha256:" not in line] == []
    assert [line for line in packages if "://" in line or line.startswith("-")] == []
