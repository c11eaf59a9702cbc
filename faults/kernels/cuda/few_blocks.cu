// A grid-stride recurrence on each element. Flawed: launched with 24 blocks.
__device__ __forceinline__ void run(const float* x, float* y, int n) {
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        float value = x[i];
#pragma unroll
        for (int round = 0; round < 64; round++) value = value * 0.984375f + 0.25f;
        y[i] = value;
    }
}
extern "C" __global__ void few_blocks_flawed(const float* x, float* y, int n) { run(x, y, n); }
extern "C" __global__ void few_blocks_fixed(const float* x, float* y, int n) { run(x, y, n); }
