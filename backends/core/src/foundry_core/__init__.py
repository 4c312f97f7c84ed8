"""What the backends of Triton Foundry share: the lowering of Triton's IR, and running its result on OpenCL devices."""
