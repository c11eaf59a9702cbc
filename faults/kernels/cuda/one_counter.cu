// The sum of an array. Flawed: each thread adds to one address.
extern "C" __global__ void one_counter_flawed(const float* x, float* total, int n) {
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) atomicAdd(total + (i & 1), x[i]);
}
extern "C" __global__ void one_counter_fixed(const float* x, float* total, int n) {
    int stride = gridDim.x * blockDim.x;
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) sum += x[i];
    for (int offset = 16; offset > 1; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    __shared__ float pair[8][2];
    if (lane < 2) pair[warp][lane] = sum;
    __syncthreads();
    if (threadIdx.x < 2) {
        float all = 0.0f;
        for (int w = 0; w < 8; w++) all += pair[w][threadIdx.x];
        atomicAdd(total + threadIdx.x, all);
    }
}
