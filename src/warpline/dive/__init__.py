"""Nsight Compute: which kernels to profile, and the reason inside each one."""
