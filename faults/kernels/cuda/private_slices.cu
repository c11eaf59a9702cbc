// Each thread keeps 32 values in shared memory and visits them many times. Flawed: a thread's values are neighbours.
template <int THREAD, int VALUE>
__device__ __forceinline__ void visit(const float* x, float* y, int rounds) {
    __shared__ float slice[128 * 32];
    int base = threadIdx.x * THREAD;
    for (int k = 0; k < 32; k++) slice[base + k * VALUE] = x[(blockIdx.x * 32 + k) * 128 + threadIdx.x];
    float sum = 0.0f;
    for (int round = 0; round < rounds; round++) {
#pragma unroll 8
        for (int k = 0; k < 32; k++) {
            sum += slice[base + k * VALUE];
            slice[base + k * VALUE] = sum * 0.03125f;
        }
    }
    y[blockIdx.x * 128 + threadIdx.x] = sum;
}
extern "C" __global__ void private_slices_flawed(const float* x, float* y, int rounds) { visit<32, 1>(x, y, rounds); }
extern "C" __global__ void private_slices_fixed(const float* x, float* y, int rounds) { visit<1, 128>(x, y, rounds); }
