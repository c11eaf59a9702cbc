"""Five kernels in Triton, one file each: what they compute, a good version, and a bad one to learn from."""
