# What every target has in common: the locked Python packages and the patched Triton in one environment, /opt/foundry. And
# the programs of MLIR, where the image has its library. Written for the classic builder, which every engine has. It runs
# without a network: all that is installed lies in the context, put there by toolchains/assembly/target_image.py from the
# lock.
ARG BASE
FROM ${BASE} AS install

# First: LLVM links Z3 for clang's static analyzer alone, and the base image is without its 28 MB. A library that has just
# the functions that LLVM names, each of which ends the process, takes its place. An assembler makes it, because the
# compiler itself does not start without it. Second: the two programs of libMLIR, where that is. Third, where PoCL is: what
# makes it start faster.
COPY mlir.c pocl.cpp /
RUN nm --dynamic --undefined-only --format=posix /usr/lib/x86_64-linux-gnu/libLLVM*.so* \
    | grep --only-matching '^Z3_[^ @]*' | sort --unique | sed 's/.*/.globl &\n.type &, @function\n&: ud2/' | as -o /z3.o - \
    && ld -shared --strip-all -z noexecstack -soname libz3.so.4 -o /usr/lib/x86_64-linux-gnu/libz3.so.4 /z3.o \
    && mkdir /programs && library=/usr/lib/llvm-22/lib/libMLIR.so.22.1 \
    && if [ -e $library ]; then \
        /usr/lib/llvm-1?/bin/clang -O2 -s -o /programs/mlir-opt /mlir.c $library -Wl,-rpath,${library%/*} \
        && ln --symbolic mlir-opt /programs/mlir-translate; \
    fi \
    && mkdir --parents /opt/foundry/lib && echo 'LLVM_18.1 {};' >/pocl.versions \
    && if [ -e /usr/lib/x86_64-linux-gnu/libpocl.so.2 ]; then \
        /usr/lib/llvm-18/bin/clang -O2 -s -fPIC -fno-exceptions -shared -Wl,--version-script=/pocl.versions \
            -o /opt/foundry/lib/pocl.so /pocl.cpp; \
    fi

# An environment of its own, because Debian's Python lets no installer into its folders. Taken out of it again is what no
# kernel needs: packages' own tests, of which pandas alone has 46 MB; xDSL's documents and tools, which its wheel puts
# beside it; C and compiled twins of fontTools' modules, which are there in Python too; and symbols. Byte code is made for
# what is left; with a fixed date it names its source by hash. All at once, because the engine copies what a step wrote.
COPY wheels/ /wheels/
ARG SOURCE_DATE_EPOCH
RUN export PYTHONDONTWRITEBYTECODE=1 && python3 -m venv /opt/foundry \
    && /opt/foundry/bin/pip install --no-index --no-deps --no-cache-dir --no-compile --disable-pip-version-check \
    --find-links /wheels --require-hashes --requirement /wheels/requirements.txt \
    && cd /opt/foundry/lib/python*/site-packages \
    && rm -rf docs scripts tests typings */tests numpy/*/tests \
    && find fontTools \( -name '*.c' -o -name '*.so' \) -delete \
    && find . -name '*.cpython-*.so' -exec strip --strip-unneeded {} + \
    && /opt/foundry/bin/python -m compileall -q -j 0 /opt/foundry/lib

# A second stage, so that the wheels themselves take no space in the image.
FROM ${BASE}
COPY --from=install /usr/lib/x86_64-linux-gnu/libz3.so.4 /usr/lib/x86_64-linux-gnu/
COPY --from=install /programs/ /usr/lib/llvm-22/bin/
COPY --from=install /opt/foundry /opt/foundry
ENV PATH=/opt/foundry/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
