// A histogram of 16 bins. Flawed: one atomic on global memory for each element.
extern "C" __global__ void histogram_flawed(const int* key, unsigned* bins, int n) {
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) atomicAdd(&bins[key[i]], 1u);
}
extern "C" __global__ void histogram_fixed(const int* key, unsigned* bins, int n) {
    __shared__ unsigned local[8][17];
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    if (lane < 16) local[warp][lane] = 0;
    __syncwarp();
    int stride = gridDim.x * blockDim.x;
    unsigned count[16] = {};
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        int k = key[i];
#pragma unroll
        for (int bin = 0; bin < 16; bin++) count[bin] += k == bin;
    }
#pragma unroll
    for (int bin = 0; bin < 16; bin++) {
        unsigned total = __reduce_add_sync(0xffffffffu, count[bin]);
        if (lane == 0) local[warp][bin] = total;
    }
    __syncthreads();
    if (threadIdx.x < 16) {
        unsigned total = 0;
        for (int w = 0; w < 8; w++) total += local[w][threadIdx.x];
        atomicAdd(&bins[threadIdx.x], total);
    }
}
