"""The matrix of CI has every target that is proven with every release."""

from __future__ import annotations

import json

from toolchains.lockfile import lock
from toolchains.testing import matrix


def test_every_release_of_every_target_is_proven_and_of_variants_those_with_parts_of_their_own() -> None:
    locked = lock.load()
    assert "spirv-bench" in locked.targets
    pairs = [(pair["target"], pair["triton"]) for pair in json.loads(matrix.matrix(locked))["include"]]
    assert {pair for pair in pairs if pair[0] == "spirv"} == {("spirv", "3.6.0"), ("spirv", "3.9.0")}
    assert ("vsi-torch", "3.2.0") in pairs
    assert not [target for target, _ in pairs if target.endswith("-bench")]
    assert len(pairs) == len(set(pairs))
