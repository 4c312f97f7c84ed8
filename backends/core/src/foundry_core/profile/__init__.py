"""Shows what bounds each kernel of a script: `python -m foundry_core.profile script.py`."""
