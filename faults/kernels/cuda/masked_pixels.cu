// One pixel in eight, at random, lies over a threshold and needs a long calculation. Flawed: a warp runs it for the four of
// its lanes that need it. Fixed: a block lists such pixels of its tile first, and full warps run through the list.
__device__ __forceinline__ float developed(float value, int steps) {
#pragma unroll 16
    for (int step = 0; step < steps; step++) value = value * 0.984375f + 0.015625f;
    return value;
}
extern "C" __global__ void masked_pixels_flawed(const float* x, float* y, float threshold, int steps) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float value = x[i];
    if (value > threshold) value = developed(value, steps);
    y[i] = value;
}
extern "C" __global__ void masked_pixels_fixed(const float* x, float* y, float threshold, int steps) {
    __shared__ float tile[4096];
    __shared__ unsigned short list[4096];
    __shared__ int listed;
    int first = blockIdx.x * 4096, lane = threadIdx.x & 31;
    if (threadIdx.x == 0) listed = 0;
    __syncthreads();
#pragma unroll 8
    for (int part = 0; part < 16; part++) {
        int k = part * 256 + threadIdx.x;
        float value = x[first + k];
        tile[k] = value;
        unsigned over = __ballot_sync(0xffffffffu, value > threshold);
        int place = 0;
        if (lane == 0) place = atomicAdd(&listed, __popc(over));
        place = __shfl_sync(0xffffffffu, place, 0) + __popc(over & ((1u << lane) - 1));
        if (value > threshold) list[place] = k;
    }
    __syncthreads();
    int count = listed;
    for (int k = threadIdx.x; k < count; k += 256) tile[list[k]] = developed(tile[list[k]], steps);
    __syncthreads();
#pragma unroll 8
    for (int part = 0; part < 16; part++) y[first + part * 256 + threadIdx.x] = tile[part * 256 + threadIdx.x];
}
