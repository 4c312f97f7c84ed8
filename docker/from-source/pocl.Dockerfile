# The PoCL that was built from source. Debian's stays where it is, and what belongs to it: the LLVM that both link with,
# and the linker. Loaders go by the file in vendors/, which names one of the two: two in one process abort in LLVM. So
# does a reference of VeriSilicon's SDK, which has PoCL for its driver.
ADD parts/pocl.tar /opt/foundry/pocl/
RUN cp /opt/foundry/pocl/etc/OpenCL/vendors/pocl.icd /etc/OpenCL/vendors/pocl.icd \
    && driver=${VSI_SDK_DIR:-/nowhere}/drivers/libpocl.so.2 \
    && if [ -L "$driver" ]; then ln -sf /opt/foundry/pocl/lib/libpocl.so.2 "$driver"; fi
