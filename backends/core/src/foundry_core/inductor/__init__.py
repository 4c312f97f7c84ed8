"""What plugins share for torch.compile: kernels of matrix products, and the order of reads and writes in place.

Input: nodes of Inductor's graph. Output: nodes that become Triton kernels. Importing it imports PyTorch's compiler.
"""
