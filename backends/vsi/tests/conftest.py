"""Fixtures that the tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_up import FakeSdk


@pytest.fixture
def fake_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSdk:
    sdk = FakeSdk.make(tmp_path / "fake sdk")
    monkeypatch.setenv("VSI_ZEN_COMPILER_PATH", str(sdk.compiler))
    monkeypatch.setenv("VSI_ZEN_TC_BRIDGE_PATH", str(sdk.bridge))
    return sdk


@pytest.fixture
def no_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VSI_ENABLE_TC", "VSI_ENABLE_MULTI_ENGINES", "VSI_ENABLE_MULTI_THREADS", "VSI_DUMP_DIR"):
        monkeypatch.delenv(name, raising=False)
