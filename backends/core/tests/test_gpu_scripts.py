"""What libraries of operators ask of torch.cuda when they are imported, before Triton has chosen a driver."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from image import python

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
