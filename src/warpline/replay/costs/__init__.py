"""What things cost, in nanoseconds: recording, launches, copies, kernels, and where each number comes from."""
