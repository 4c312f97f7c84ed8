"""What is timed, and against which peer. `python -m bench` in a target's image, or `./foundry bench TARGET`.

    problem.py       a problem: arrays, work, the exact result with the allowed error, and how Triton launches it
    problems/        one module for each kernel, and what is hand-written for it in OpenCL C, in a .cl file; kernels.py
                     has Triton's kernels, each once for all devices, and opencl_peers.py other ways to do the same work
    devices.py       where Triton launches them
    dpu_limits.py    what DPUs are compared with: programs in C, and upper limits of their speed
    variance.py      why the time of a kernel is another one in another process
    turns.py         how time is taken: candidates take turns, and a ratio is of one run
    measurement.py   what was found: the table for the terminal, the JSON, and in gpu.py the Markdown
    opencl.py, vulkan.py, dpu.py, vsi.py
                     one for each kind of device: sizes, types and launch options, as rows of tables

e2e/ must be on PYTHONPATH: it has the kernels of the first and the third tutorial, and runs and reports measurements.
"""
