"""Build backend of the repository's root: print the right command for a user who types `pip install .`."""

raise SystemExit(
    "Triton Foundry is not a Python package. From its checkout, type: ./foundry help\n"
    "For a plugin alone, in an environment that has Triton: pip install -e backends/NAME"
)
