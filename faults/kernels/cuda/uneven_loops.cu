// Each element has its own number of rounds. Flawed: lengths are mixed within a warp. Fixed: a list orders the elements.
__device__ __forceinline__ float iterate(float value, int rounds) {
    for (int round = 0; round < rounds; round++) value = value * 0.984375f + 0.25f;
    return value;
}
extern "C" __global__ void uneven_loops_flawed(const float* x, const int* rounds, const int* order, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = iterate(x[i], rounds[i]);
}
extern "C" __global__ void uneven_loops_fixed(const float* x, const int* rounds, const int* order, float* y) {
    int i = order[blockIdx.x * blockDim.x + threadIdx.x];
    y[i] = iterate(x[i], rounds[i]);
}
