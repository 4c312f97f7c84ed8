"""Upstream projects built from source: a locked source becomes a patched tree, that a Conan package, that a part.

    tree.py       the source, verified, patched, as a tar
    llvmhash.py   the LLVM commit that a Triton's tree asks for
    build.py      the tree compiled in a container of the locked builder
    progress.py timings.py resources.py    what one wants to know of a build that takes an hour, and what it may take
    remote.py     packages to and from a Conan remote
    bake.py       the target's images by BuildKit on another machine
"""
