// Rounds of 1024 elements, one block an SM (dynamic shared memory). Flawed: 140 blocks of 16 rounds, so that the second
// wave has 8 blocks. Fixed: the same rounds dealt out to as many blocks as there are SMs.
extern __shared__ float reserved[];
__device__ __forceinline__ void one_round(const float* x, float* y, int round, int steps) {
    int i = round * 1024 + threadIdx.x;
    float a = x[i], b = a + 1.0f, c = a + 2.0f, d = a + 3.0f;
    for (int step = 0; step < steps; step++) {
        a = a * 0.984375f + 0.25f;
        b = b * 0.96875f + 0.25f;
        c = c * 0.9375f + 0.25f;
        d = d * 0.875f + 0.25f;
    }
    y[i] = a + b + c + d;
}
extern "C" __global__ void last_wave_flawed(const float* x, float* y, int rounds, int steps) {
    if (rounds < 0) reserved[threadIdx.x] = 0.0f;
    for (int round = 0; round < 16; round++) one_round(x, y, blockIdx.x * 16 + round, steps);
}
extern "C" __global__ void last_wave_fixed(const float* x, float* y, int rounds, int steps) {
    if (rounds < 0) reserved[threadIdx.x] = 0.0f;
    for (int round = blockIdx.x; round < rounds; round += gridDim.x) one_round(x, y, round, steps);
}
