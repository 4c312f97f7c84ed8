"""Everything in one report: `python e2e [--results FOLDER] [--only TEXT]`."""

import itertools

import dpu
import matmul
import modes
import vec_add
from report import run_script

run_script("e2e", lambda: itertools.chain(vec_add.cases(), matmul.cases(), modes.cases(), dpu.cases()))
