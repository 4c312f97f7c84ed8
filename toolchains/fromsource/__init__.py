"""Upstream projects built from source: a locked source becomes a patched tree, that a Conan package, that a part.

choice.py     what a user wants: --from-source and its like            overview.py   the verb `upstream`
tree.py       the source, verified, patched, as a tar                  origins.py packed.py   from where, and how
llvmhash.py   the LLVM commit that a Triton's tree asks for
build.py      the tree compiled in a container of the locked builder   package.py    Conan's package as a part
progress.py timings.py resources.py     what one wants to know of a build that takes an hour, and what it may take
wheel.py      a compiled Triton in the official wheel's place
cache.py      the verb `cache`: remote.py moves packages to and from a Conan remote, server.py is one, conanlock.py
              says which versions recipes may require of each other
"""
