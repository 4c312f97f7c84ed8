
# The typed-pointer LLVM that was built from source: its opt, which has dpu-legalize in it, takes the place of the suite's.
ADD parts/upmem-llvm.tar /opt/foundry/upmem-llvm/
ENV UPMEM_OPT=/opt/foundry/upmem-llvm/bin/opt
