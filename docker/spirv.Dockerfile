# The spirv target: Triton kernels through SPIR-V on an OpenCL device; in this image PoCL, on the CPU.
# PYTHON is the image that python.Dockerfile made. Own packages come last, so that an edit in backends/ costs one step.
ARG PYTHON
FROM ${PYTHON}

# mlir-opt, mlir-translate and llc.
ADD parts/llvm-tools.tar /usr/lib/llvm-22/

# The lowering runs them.
ENV PATH=/opt/foundry/bin:/usr/lib/llvm-22/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# Triton 3.9 warns when fusion of multiply and add is left to its default; this is that default.
ENV TRITON_DEFAULT_BACKEND=spirv TRITON_DEFAULT_FP_FUSION=1

# Compiled kernels: Triton's, PyOpenCL's and PoCL's. Writable for whichever user the container runs as.
ENV XDG_CACHE_HOME=/tmp/cache TRITON_CACHE_DIR=/tmp/cache/triton

COPY wheels/ /opt/foundry/wheels/
ARG SOURCE_DATE_EPOCH
RUN PYTHONDONTWRITEBYTECODE=1 \
    pip install --no-index --no-deps --no-cache-dir --disable-pip-version-check \
    --find-links /opt/foundry/wheels --require-hashes --requirement /opt/foundry/wheels/requirements.txt

# Where the checks are copied to: e2e/ in /foundry/e2e.
WORKDIR /foundry
CMD ["/bin/bash"]
