// The dot product of each tile of x with eight weights. Flawed: all tiles for the first weight, then all for the second.
// Fixed: the eight weights of one tile are neighbours in the grid.
__device__ __forceinline__ void dot(const float4* x, float* y, int weight, int tile, int tiles) {
    __shared__ float part[8];
    float sum = 0.0f, scale = 1.0f + weight;
    for (int k = 0; k < 8; k++) {
        float4 v = x[(long long)tile * 2048 + k * 256 + threadIdx.x];
        sum += (v.x + v.y + v.z + v.w) * scale;
    }
    for (int offset = 16; offset; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; w++) sum += part[w];
        y[weight * tiles + tile] = sum;
    }
}
extern "C" __global__ void tile_order_flawed(const float4* x, float* y, int tiles) {
    dot(x, y, blockIdx.x / tiles, blockIdx.x % tiles, tiles);
}
extern "C" __global__ void tile_order_fixed(const float4* x, float* y, int tiles) {
    dot(x, y, blockIdx.x & 7, blockIdx.x >> 3, tiles);
}
