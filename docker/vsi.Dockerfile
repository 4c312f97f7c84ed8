# The vsi target: Triton kernels on VeriSilicon's GPGPUs; in this image, unless a user supplied the SDK, on our reference
# of it with PoCL as its driver. PYTHON is the image that python.Dockerfile made. Own packages come last, so that an edit
# in backends/ costs one step.
ARG PYTHON
FROM ${PYTHON}

# The reference SDK, or, as --sdk gives it, VeriSilicon's own of the same layout.
ARG SDK=vsi-reference-sdk
ARG SDK_HOME=/opt/vsi-sdk
ADD parts/${SDK}.tar ${SDK_HOME}/

# mlir-opt, mlir-translate and llc.
ADD parts/llvm-tools.tar /usr/lib/llvm-22/

# As VeriSilicon's instructions have it; these paths are all that differs where their SDK is used. PATH has mlir-opt and
# llc of LLVM 22, which the reference compiler runs, and the clang that CC names and that host programs are built with.
ENV VSI_SDK_DIR=${SDK_HOME} LD_LIBRARY_PATH=${SDK_HOME}/drivers \
    VSI_ZEN_COMPILER_PATH=${SDK_HOME}/bin/zen-compiler VSI_ZEN_TC_BRIDGE_PATH=${SDK_HOME}/lib/libZenTCBridge.so \
    CC=clang \
    PATH=/opt/foundry/bin:/usr/lib/llvm-22/bin:/usr/lib/llvm-18/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# Triton 3.9 warns when fusion of multiply and add is left to its default; this is that default.
ENV TRITON_DEFAULT_BACKEND=vsi TRITON_DEFAULT_FP_FUSION=1

# Compiled kernels: Triton's, PyOpenCL's and PoCL's. Writable for whichever user the container runs as.
ENV XDG_CACHE_HOME=/tmp/cache TRITON_CACHE_DIR=/tmp/cache/triton

COPY wheels/ /opt/foundry/wheels/
ARG SOURCE_DATE_EPOCH
RUN PYTHONDONTWRITEBYTECODE=1 \
    pip install --no-index --no-deps --no-cache-dir --disable-pip-version-check \
    --find-links /opt/foundry/wheels --require-hashes --requirement /opt/foundry/wheels/requirements.txt

# Where the checks are copied to: e2e/ in /foundry/e2e, the plugin's sources to /foundry/triton_vsi_backend.
WORKDIR /foundry
CMD ["/bin/bash"]
