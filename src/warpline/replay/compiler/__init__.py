"""What a compiler (inductor) would fuse, and what the fused kernels must move and compute."""
