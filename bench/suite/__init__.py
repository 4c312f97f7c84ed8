"""The benchmarks of kernels: one module for each, with what is hand-written for it in the .cl file of the same name.

A module has:

    QUICK, FULL    the arguments of `problem` for each size and type; FULL includes QUICK
    problem(...)   makes the problem: arrays, work, exact result with the allowed error, candidates (bench/problem.py)

To add one, write the module and name it in bench/opencl.py.
"""
