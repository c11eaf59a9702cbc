// Eight kinds of element, each with its own formula. Flawed: the lanes of one warp hold all eight kinds.
__device__ __forceinline__ float work(int kind, float value, int rounds) {
    switch (kind) {
    case 0: for (int r = 0; r < rounds; r++) value = value * 0.5f + 0.125f; break;
    case 1: for (int r = 0; r < rounds; r++) value = fmaf(value, value, -0.5f) * 0.25f; break;
    case 2: for (int r = 0; r < rounds; r++) value = fabsf(value - 0.75f) * 0.875f; break;
    case 3: for (int r = 0; r < rounds; r++) value = fminf(value * 1.5f, 1.0f) - 0.25f; break;
    case 4: for (int r = 0; r < rounds; r++) value = fmaxf(value - 0.125f, 0.0f) * 1.0625f; break;
    case 5: for (int r = 0; r < rounds; r++) value = (value + 0.375f) * (value - 0.375f); break;
    case 6: for (int r = 0; r < rounds; r++) value = 0.5f - value * 0.375f * value; break;
    default: for (int r = 0; r < rounds; r++) value = value > 0.5f ? value * 0.5f : value + 0.25f; break;
    }
    return value;
}
extern "C" __global__ void lane_kinds_flawed(const float* x, float* y, int rounds) {
    int i = blockIdx.x * 256 + threadIdx.x;
    y[i] = work(i & 7, x[i], rounds);
}
extern "C" __global__ void lane_kinds_fixed(const float* x, float* y, int rounds) {
    int i = blockIdx.x * 256 + (threadIdx.x & 31) * 8 + (threadIdx.x >> 5);
    y[i] = work(i & 7, x[i], rounds);
}
