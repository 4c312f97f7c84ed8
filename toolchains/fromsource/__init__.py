"""Upstream projects built from source: a locked source becomes a patched tree, then a Conan package, then a part.

Input: the lock's sources and the options --from-source, --source and --profile. Output: parts in the store.

choice.py            which projects a user wants built from source
origins.py           where a source comes from: a commit, a source package, a folder
source_tar.py        a source tree as a tar: the files that are needed, checked and patched
tree.py              the source of a project, verified and patched, as a tar in the store
llvmhash.py          the LLVM commit that a Triton's tree asks for
build.py             compiles a tree in a container of the locked builder
conan_package.py     takes Conan's package out of the container as a part
compiled_triton.py   a compiled Triton in the place of the official wheel
progress.py timings.py resources.py   a build's progress, its slowest steps, and how many of them may run at once
remote.py server.py  packages to and from a Conan remote, and a Conan remote
"""
