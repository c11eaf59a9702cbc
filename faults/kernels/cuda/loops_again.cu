// Elements in the order of a list. Flawed: the list is followed for every array. Fixed: the inputs are stored in its order.
__device__ __forceinline__ float iterate(float value, int rounds) {
    for (int round = 0; round < rounds; round++) value = value * 0.984375f + 0.25f;
    return value;
}
extern "C" __global__ void loops_again_flawed(const float* x, const int* rounds, const int* order, float* y) {
    int i = order[blockIdx.x * blockDim.x + threadIdx.x];
    y[i] = iterate(x[i], rounds[i]);
}
extern "C" __global__ void loops_again_fixed(const float* x, const int* rounds, const int* order, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[order[i]] = iterate(x[i], rounds[i]);
}
