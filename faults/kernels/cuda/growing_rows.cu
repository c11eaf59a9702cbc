// 264 groups of rows, group g of work g + 1, two groups a block, one block an SM. Flawed: neighbours share a block, so that
// the last block has 264 times the work of the first. Fixed: the shortest is paired with the longest.
extern __shared__ float reserved[];
__device__ __forceinline__ void group(const float* x, float* y, int g, int steps) {
    int i = g * 1024 + threadIdx.x;
    float a = x[i], b = a + 1.0f, c = a + 2.0f, d = a + 3.0f;
    for (int step = 0; step < steps * (g + 1); step++) {
        a = a * 0.984375f + 0.25f;
        b = b * 0.96875f + 0.25f;
        c = c * 0.9375f + 0.25f;
        d = d * 0.875f + 0.25f;
    }
    y[i] = a + b + c + d;
}
extern "C" __global__ void growing_rows_flawed(const float* x, float* y, int groups, int steps) {
    if (groups < 0) reserved[threadIdx.x] = 0.0f;
    group(x, y, 2 * blockIdx.x, steps);
    group(x, y, 2 * blockIdx.x + 1, steps);
}
extern "C" __global__ void growing_rows_fixed(const float* x, float* y, int groups, int steps) {
    if (groups < 0) reserved[threadIdx.x] = 0.0f;
    group(x, y, blockIdx.x, steps);
    group(x, y, groups - 1 - blockIdx.x, steps);
}
