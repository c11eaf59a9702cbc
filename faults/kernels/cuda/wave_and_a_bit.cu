// Two blocks of 1024 threads fit on an SM. Flawed: 280 blocks of 32 rounds for 264 places. Fixed: rounds dealt out evenly.
__device__ __forceinline__ void chain(const float* x, float* y, int round, int steps) {
    int i = round * 1024 + threadIdx.x;
    float a = x[i], b = a + 1.0f;
    for (int step = 0; step < steps; step++) {
        a = a * 0.984375f + 0.25f;
        b = b * 0.96875f + 0.25f;
    }
    y[i] = a + b;
}
extern "C" __global__ void __launch_bounds__(1024, 2) wave_and_a_bit_flawed(const float* x, float* y, int rounds, int steps) {
    for (int round = 0; round < 32; round++) chain(x, y, blockIdx.x * 32 + round, steps);
}
extern "C" __global__ void __launch_bounds__(1024, 2) wave_and_a_bit_fixed(const float* x, float* y, int rounds, int steps) {
    for (int round = blockIdx.x; round < rounds; round += gridDim.x) chain(x, y, round, steps);
}
