"""Run the code cells of a notebook, in a container, and write what they show to a file after each one.

    python notebook_cells.py NOTEBOOK OUTPUTS

OUTPUTS gets a line of JSON for each cell that ran: its number from 0, its execution count and its outputs, in the form
of nbformat. What cells print is printed here as well. This file is copied into the container; archives/cell_outputs.py,
on the user's machine, writes the outputs into the notebook.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat.v4.rwbase import split_lines

# What a shell adds to the number of a signal.
_SIGNALLED = 128
_INTERRUPTED = 130
_COLOURS = re.compile("\x1b\\[[0-9;]*m")


class _Client(NotebookClient):  # type: ignore[misc]
    """Prints what cells print, as they print it."""

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] == "stream" and "parent_header" in msg:
            stream = sys.stderr if msg["content"]["name"] == "stderr" else sys.stdout
            print(msg["content"]["text"], end="", file=stream, flush=True)
        return super().process_message(msg, cell, cell_index)


def main(path: str, outputs: str) -> int:
    """Run a notebook's cells up to the first one that fails; return the exit status."""
    notebook = nbformat.read(path, as_version=4)
    total = len(notebook.cells)
    client = _Client(notebook, timeout=None, kernel_name="python3", resources={"metadata": {"path": "."}})
    # By sockets in a folder: a port would be open to all processes of the container, and the kernel warns of it.
    client.create_kernel_manager().transport = "ipc"
    with Path(outputs).open("w", encoding="utf-8") as file, client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                continue
            cell.outputs, cell.execution_count = [], None
            status = 0
            try:
                client.execute_cell(cell, index)
            except CellExecutionError as error:
                print(f"cell {index + 1} of {total} failed: {error.ename}: {error.evalue}", file=sys.stderr)
                trace = next(output.traceback for output in cell.outputs if output.output_type == "error")
                lines = "\n".join(trace) if sys.stderr.isatty() else _COLOURS.sub("", "\n".join(trace))
                print(lines, file=sys.stderr)
                status = 1
            except DeadKernelError:
                ended = getattr(getattr(client.km.provisioner, "process", None), "returncode", None) or 1
                print(f"cell {index + 1} of {total} ended the process of the kernel: {ended}", file=sys.stderr)
                status = _SIGNALLED - ended if ended < 0 else ended
            except KeyboardInterrupt:
                print(f"interrupted in cell {index + 1} of {total}", file=sys.stderr)
                status = _INTERRUPTED
            split = split_lines(nbformat.v4.new_notebook(cells=[cell])).cells[0]
            row = {"cell": index, "execution_count": cell.execution_count, "outputs": split.outputs}
            print(json.dumps(row), file=file, flush=True)
            if status:
                return status
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
