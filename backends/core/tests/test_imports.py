"""Every module of a backend can be the first that a script imports, and what imports ask of torch is answered."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import subprocess
import sys
from pathlib import Path

import foundry_core
import pytest
import triton
from image import python

# Imports each module in a fresh process: a child of one that has imported what most of them need, which is faster.
FIRST = """
import importlib, os, sys
import numpy, xdsl.dialects.builtin
for name in sys.argv[1:]:
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    try:
        module = importlib.import_module(name)
        assert sys.modules[name] is module, "there are two of it"
        if "triton" in sys.modules:
            assert sys.modules["triton"].backends.backends, "Triton has no backend"
    except BaseException as error:
        if not (isinstance(error, ModuleNotFoundError) and error.name in ("pyopencl", "torch")):
            print(f"{name}: {error!r}", flush=True)
    os._exit(0)
"""


def test_each_module_can_be_imported_before_triton() -> None:
    backend = triton.backends.backends[triton.runtime.driver.active.get_current_target().backend]
    plugin = importlib.import_module(backend.compiler.__module__.split(".")[0])
    modules = [each.name for each in pkgutil.walk_packages(plugin.__path__, f"{plugin.__name__}.")]
    modules += [each.name for each in pkgutil.iter_modules(foundry_core.__path__, f"{foundry_core.__name__}.")]
    # PyTorch's compiler imports those of the inductor, on a device of its vendor.
    modules = [each for each in modules if not each.endswith("__main__") and ".inductor." not in each]
    assert f"{plugin.__name__}.driver" in modules
    ended = subprocess.run([sys.executable, "-c", FIRST, *modules], capture_output=True, text=True, check=True)
    assert ended.stdout == ""


LAUNCH = """
import numpy as np
import triton
import triton.language as tl

@triton.jit
def store_kernel(x_ptr):
    tl.store(x_ptr, 7)

x = np.zeros(1, np.int32)
store_kernel[(1,)](x)
print(x[0])
"""


def test_a_launch_does_not_import_torch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("print('torch is imported')\nraise ImportError\n")
    (tmp_path / "script.py").write_text(LAUNCH)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, check=False)
    assert done.stdout == "7\n", done.stderr


# The part of torch for CPUs that is asked, for images without it.
TORCH = {
    "__init__.py": "from . import cpu, cuda\n",
    "cpu.py": "def set_device(device): pass\n",
    "cuda/__init__.py": """
def _lazy_init():
    raise AssertionError("Torch not compiled with CUDA enabled")
def get_device_properties(device=None):
    _lazy_init()
def get_device_name(device=None):
    return get_device_properties(device).name
def is_available():
    return False
from . import random
""",
    "cuda/random.py": "",
}
ASKED = """
known = torch.cuda.get_device_properties(0)
print(torch.cuda.get_device_name(), known.multi_processor_count, torch.cuda.is_available())
torch.cpu.set_stream(None)
try:
    torch.cuda._lazy_init()
except AssertionError as error:
    assert "next: make tensors with device=" in str(error), error
"""

REPORTED = """
import triton
driver = triton.runtime.driver.active
print(driver.device_report().device, driver.utils.get_device_properties(0)["multiprocessor_count"], False)
"""


@pytest.mark.parametrize("first", ["import torch, triton", "import triton, torch"])
def test_the_device_can_be_asked_before_a_driver_is_active(first: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        for name, text in TORCH.items():
            (tmp_path / "torch" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "torch" / name).write_text(text)
    done = python("-c", f"import sys; sys.path.append({str(tmp_path)!r}); {first}\n{ASKED}")
    # A process of its own, since a report may name what this one has launched.
    ran = python("-c", REPORTED)
    assert done.stdout == ran.stdout, done.stderr + ran.stderr
    assert done.stdout.endswith(" False\n"), done.stderr
