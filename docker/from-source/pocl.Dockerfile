# The PoCL that was built from source. Debian's stays where it is, and what belongs to it: the LLVM that both link with,
# and the linker. Loaders go by the file in vendors/, which names one of the two: two in one process abort in LLVM.
ADD parts/pocl.tar /opt/foundry/pocl/
RUN cp /opt/foundry/pocl/etc/OpenCL/vendors/pocl.icd /etc/OpenCL/vendors/pocl.icd
