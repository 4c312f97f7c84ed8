"""Run checks: e2e, bench, conformance and the whole test run.

Input: a target's image. Output: results in `build/results`, and an exit status: e2e, conformance, bench, `./foundry
test`.
"""
