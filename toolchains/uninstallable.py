"""The build backend of the repository's root: tells whoever types `pip install .` there what to type instead."""

raise SystemExit(
    "Triton Foundry is not a Python package: it runs from its checkout. Type ./foundry e2e spirv (or ./foundry --help). "
    "For a backend's plugin in an environment with Triton: pip install -e backends/spirv (or backends/dpu, backends/vsi)"
)
