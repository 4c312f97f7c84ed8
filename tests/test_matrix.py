"""CI's matrix has a job for each release of each proven target."""

from __future__ import annotations

import json
from dataclasses import replace

from toolchains.lockfile import lock
from toolchains.lockfile.lock import Lock
from toolchains.testing import matrix


def test_each_release_of_each_target_is_a_job_and_a_variant_without_parts_of_its_own_is_none() -> None:
    known = lock.load().targets["spirv"]
    tritons = dict.fromkeys(["1.0", "2.0"], next(iter(known.tritons.values())))
    one = replace(known, name="one", backend="one", tritons=tritons)
    targets = [
        one,
        replace(one, name="variant"),
        replace(one, name="other", backend="other", tritons={"3.0": tritons["1.0"]}),
    ]
    jobs = json.loads(matrix.matrix(Lock({target.name: target for target in targets}, "")))
    pairs = [("one", "1.0"), ("one", "2.0"), ("other", "3.0")]
    assert jobs == {"include": [{"target": target, "triton": release} for target, release in pairs]}
