// Heat spreads along rods of 1024 cells, one rod a warp; the 32 cells of a lane stay in registers, which leaves room for one
// block of 1024 threads an SM. Flawed: 140 blocks of 256 rods, so that the second wave has 8 blocks. Fixed: a block for each
// of 132 SMs, and the rods dealt out to their warps. Word k * 32 + lane of a rod is cell k of that lane.
__device__ __forceinline__ void heat(const float* x, float* y, int rod, int steps) {
    int lane = threadIdx.x & 31;
    long long first = (long long)rod * 1024 + lane;
    float cell[32];
#pragma unroll
    for (int k = 0; k < 32; k++) cell[k] = x[first + k * 32];
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        float before = __shfl_up_sync(0xffffffffu, cell[31], 1), after = __shfl_down_sync(0xffffffffu, cell[0], 1);
#pragma unroll
        for (int k = 0; k < 32; k++) {
            float here = cell[k], next = k < 31 ? cell[(k + 1) & 31] : after;
            cell[k] = 0.25f * (before + next) + 0.5f * here;
            before = here;
        }
    }
#pragma unroll
    for (int k = 0; k < 32; k++) y[first + k * 32] = cell[k];
}
extern "C" __global__ void __launch_bounds__(1024, 1) heated_rods_flawed(const float* x, float* y, int rods, int steps) {
    for (int k = threadIdx.x >> 5; k < 256; k += 32) heat(x, y, blockIdx.x * 256 + k, steps);
}
extern "C" __global__ void __launch_bounds__(1024, 1) heated_rods_fixed(const float* x, float* y, int rods, int steps) {
    for (int rod = (threadIdx.x >> 5) * gridDim.x + blockIdx.x; rod < rods; rod += 32 * gridDim.x) heat(x, y, rod, steps);
}
