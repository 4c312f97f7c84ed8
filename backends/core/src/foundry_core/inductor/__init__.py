"""What plugins share for torch.compile: the lowering of matrix products. It imports PyTorch's compiler.

Input: nodes of Inductor's graph. Output: a Triton kernel, into which what follows is fused.
"""
