"""Build upstream projects from source: a locked source becomes a patched tree, a Conan package, and a part.

Input: what a user wants built from source, and the locked sources. Output: parts in the store, and the wheel of a
compiled Triton.

choice.py                               what a user wants: --from-source and the options with it
tree.py, origins.py, packed.py          the source as a tar: where it comes from, verified and patched
llvmhash.py                             the LLVM commit that a Triton's tree asks for
build.py, package.py                    the tree compiled in a container of the locked builder; its package as a part
progress.py, timings.py, resources.py   the progress of a build, where its time went, and how many jobs it may run
wheel.py                                a compiled Triton instead of the official wheel
remote.py, server.py                    packages to and from a Conan remote, and a server for them
"""
