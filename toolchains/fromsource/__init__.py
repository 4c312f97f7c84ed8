"""Build upstream projects from source: a locked source becomes a patched tree, then a Conan package, then a part.

Input: a locked source. Output: a patched tree, its Conan package, a part in the store.

choice.py            the projects that a user wants to build from source
origins.py           the origins of a source: a commit, a source package, a folder
source_tar.py        a source tree as a tar: the files that are needed, checked and patched
tree.py              a project's source, verified and patched, as a tar in the store
llvmhash.py          the LLVM commit that a Triton's tree requires
build.py             compiles a tree in a container of the locked builder
conan.py             Conan in a container: exports recipes, and copies a package out as a part
compiled_triton.py   a compiled Triton that replaces the official wheel
progress.py timings.py resources.py   a build's progress, its slowest steps, and how many of them may run at once
remote.py server.py  packages to and from a Conan remote, and a Conan remote
"""
