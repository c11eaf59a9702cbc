// Row sums from chunks of equal length, one block a chunk. Flawed: loads of four bytes. Fixed: of sixteen.
__device__ __forceinline__ void add_sum(float sum, const int* owner, float* y) {
    __shared__ float part[8];
    for (int offset = 16; offset; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int w = 0; w < 8; w++) sum += part[w];
    if (threadIdx.x == 0) atomicAdd(&y[owner[blockIdx.x]], sum);
}
extern "C" __global__ void rows_again_flawed(const float* x, const int* chunk, const int* owner, float* y) {
    float sum = 0.0f;
    int last = chunk[blockIdx.x + 1];
    for (int i = chunk[blockIdx.x] + threadIdx.x; i < last; i += blockDim.x) sum += x[i];
    add_sum(sum, owner, y);
}
extern "C" __global__ void rows_again_fixed(const float4* x, const int* chunk, const int* owner, float* y) {
    float sum = 0.0f;
    int last = chunk[blockIdx.x + 1] / 4;
    for (int i = chunk[blockIdx.x] / 4 + threadIdx.x; i < last; i += blockDim.x) {
        float4 value = x[i];
        sum += value.x + value.y + value.z + value.w;
    }
    add_sum(sum, owner, y);
}
