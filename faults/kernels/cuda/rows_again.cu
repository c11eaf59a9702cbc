// Row sums from chunks of equal length, one block a chunk. Flawed: 4285 chunks, a little over four waves. Cured: 17140.
__device__ __forceinline__ void add_chunk(const float* x, const int* chunk, const int* owner, float* y) {
    __shared__ float part[8];
    float sum = 0.0f;
    int last = chunk[blockIdx.x + 1];
    for (int i = chunk[blockIdx.x] + threadIdx.x; i < last; i += blockDim.x) sum += x[i];
    for (int offset = 16; offset; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int w = 0; w < 8; w++) sum += part[w];
    if (threadIdx.x == 0) atomicAdd(&y[owner[blockIdx.x]], sum);
}
extern "C" __global__ void rows_again_flawed(const float* x, const int* chunk, const int* owner, float* y) {
    add_chunk(x, chunk, owner, y);
}
extern "C" __global__ void rows_again_cured(const float* x, const int* chunk, const int* owner, float* y) {
    add_chunk(x, chunk, owner, y);
}
