// 64 running values a thread, all alive at once. Flawed: the launch bound leaves 32 registers a thread.
__device__ __forceinline__ void mix(const float* x, float* y, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value[64];
#pragma unroll
    for (int k = 0; k < 64; k++) value[k] = x[(i + k * 512) % n];
    for (int round = 0; round < rounds; round++) {
#pragma unroll
        for (int k = 0; k < 64; k++) value[k] = value[k] * 0.5f + value[(k * 29 + 7) & 63] * 0.25f;
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 64; k++) sum += value[k] * (float)(k + 1);
    y[i] = sum;
}
extern "C" __global__ void __launch_bounds__(512, 4) register_cap_flawed(const float* x, float* y, int n, int rounds) {
    mix(x, y, n, rounds);
}
extern "C" __global__ void __launch_bounds__(512, 1) register_cap_fixed(const float* x, float* y, int n, int rounds) {
    mix(x, y, n, rounds);
}
