// The sum of all rows of 512 bytes that a list names; each warp takes 32 rows, eight loads in flight. The list of the flawed
// form is in random order, that of the fixed form sorted, so that a row is read from DRAM once and then hits a cache.
__device__ __forceinline__ void gather(const float4* table, const int* row, float* total) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    int mine = row[warp * 32 + lane];
    float sum = 0.0f;
#pragma unroll 8
    for (int k = 0; k < 32; k++) {
        int at = __shfl_sync(0xffffffffu, mine, k);
        float4 value = table[(long long)at * 32 + lane];
        sum += value.x + value.y + value.z + value.w;
    }
#pragma unroll
    for (int offset = 16; offset; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane == 0) total[warp] = sum;
}
extern "C" __global__ void gather_sum_flawed(const float4* table, const int* row, float* total) { gather(table, row, total); }
extern "C" __global__ void gather_sum_fixed(const float4* table, const int* row, float* total) { gather(table, row, total); }
