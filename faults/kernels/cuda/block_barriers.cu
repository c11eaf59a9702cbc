// A thread trades values with its neighbour in the warp, many times. Flawed: through shared memory with a barrier of the
// whole block. Fixed: with a shuffle.
extern "C" __global__ void block_barriers_flawed(const float* x, float* y, int rounds) {
    __shared__ float shared[1024];
    int i = blockIdx.x * 1024 + threadIdx.x, next = (threadIdx.x & ~31) | ((threadIdx.x + 1) & 31);
    float value = x[i];
    for (int round = 0; round < rounds; round++) {
        shared[threadIdx.x] = value;
        __syncthreads();
        value = value * 0.5f + shared[next] * 0.5f;
        __syncthreads();
    }
    y[i] = value;
}
extern "C" __global__ void block_barriers_fixed(const float* x, float* y, int rounds) {
    int i = blockIdx.x * 1024 + threadIdx.x;
    float value = x[i];
    for (int round = 0; round < rounds; round++) {
        float other = __shfl_sync(0xffffffffu, value, (threadIdx.x + 1) & 31);
        value = value * 0.5f + other * 0.5f;
    }
    y[i] = value;
}
