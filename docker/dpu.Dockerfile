# The dpu target: Triton kernels on UPMEM's DPUs; in this image, unless a user supplied the SDK, on our emulator of them.
# PYTHON is the image that python.Dockerfile made. Own packages come last, so that an edit in backends/ costs one step.
ARG PYTHON
FROM ${PYTHON}

# The emulator, or, as --sdk gives it, UPMEM's own SDK with the same surface. Instructions for UPMEM name the SDK by its
# version; so does the link, to that of the releases which the emulator takes after.
ARG SDK=upmem-emulator
ARG SDK_HOME=/upmem-sdk-emulator
ADD parts/${SDK}.tar ${SDK_HOME}/
RUN test ${SDK} != upmem-emulator || ln -s upmem-sdk-emulator /upmem-sdk-2023.1.0

# cc compiles the host programs that go with DPU programs.
RUN ln -s /usr/lib/llvm-14/bin/clang /usr/local/bin/cc

ADD parts/dpu-legalize.tar /opt/foundry/dpu-legalize/

# The lowering runs mlir-opt and mlir-translate of LLVM 22; UPMEM_HOME and LD_LIBRARY_PATH are as UPMEM's own
# environment script sets them, UPMEM_OPT names the opt that has dpu-legalize.
ENV UPMEM_HOME=${SDK_HOME} LD_LIBRARY_PATH=${SDK_HOME}/lib UPMEM_OPT=/opt/foundry/dpu-legalize/bin/opt \
    PATH=/opt/foundry/bin:${SDK_HOME}/bin:/usr/lib/llvm-22/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# Triton 3.9 warns when fusion of multiply and add is left to its default; this is that default.
ENV TRITON_DEFAULT_BACKEND=dpu TRITON_DEFAULT_FP_FUSION=1

# Compiled kernels. Writable for whichever user the container runs as.
ENV XDG_CACHE_HOME=/tmp/cache TRITON_CACHE_DIR=/tmp/cache/triton

COPY wheels/ /opt/foundry/wheels/
ARG SOURCE_DATE_EPOCH
RUN PYTHONDONTWRITEBYTECODE=1 \
    pip install --no-index --no-deps --no-cache-dir --disable-pip-version-check \
    --find-links /opt/foundry/wheels --require-hashes --requirement /opt/foundry/wheels/requirements.txt

# Where the checks are copied to: e2e/ in /foundry/e2e.
WORKDIR /foundry
CMD ["/bin/bash"]
