// The mean of the last eight samples along each row, a block a row, through a tile in shared memory. Flawed: a thread has
// one load of four bytes in flight, and a block of 1024 threads waits for all of them before it goes on. Fixed: sixteen
// bytes a thread, loaded one tile ahead, in blocks of 256.
extern "C" __global__ void __launch_bounds__(1024, 2) trailing_average_flawed(const float* x, float* y, int columns) {
    __shared__ float tile[8 + 1024];
    long long first = (long long)blockIdx.x * columns + threadIdx.x;
    if (threadIdx.x < 8) tile[threadIdx.x] = 0.0f;
#pragma unroll 1
    for (int at = 0; at < columns; at += 1024) {
        tile[8 + threadIdx.x] = x[first + at];
        __syncthreads();
        float sum = 0.0f, carry = threadIdx.x < 8 ? tile[1024 + threadIdx.x] : 0.0f;
#pragma unroll
        for (int k = 0; k < 8; k++) sum += tile[8 + threadIdx.x - k];
        y[first + at] = sum * 0.125f;
        __syncthreads();
        if (threadIdx.x < 8) tile[threadIdx.x] = carry;
    }
}
extern "C" __global__ void __launch_bounds__(256, 8) trailing_average_fixed(const float4* x, float4* y, int columns) {
    __shared__ float4 tile[2 + 256];
    int quads = columns / 4;
    const float4* source = x + (long long)blockIdx.x * quads + threadIdx.x;
    float4* target = y + (long long)blockIdx.x * quads + threadIdx.x;
    if (threadIdx.x < 2) tile[threadIdx.x] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 ahead = source[0];
#pragma unroll 1
    for (int at = 0; at < quads; at += 256) {
        float4 own = ahead;
        if (at + 256 < quads) ahead = source[at + 256];
        tile[2 + threadIdx.x] = own;
        __syncthreads();
        float4 p = tile[threadIdx.x], q = tile[threadIdx.x + 1];
        float4 carry = tile[256 + (threadIdx.x & 1)];
        float five = q.x + q.y + q.z + q.w + own.x;
        target[at] = make_float4((p.y + p.z + p.w + five) * 0.125f, (p.z + p.w + five + own.y) * 0.125f,
                                 (p.w + five + own.y + own.z) * 0.125f, (five + own.y + own.z + own.w) * 0.125f);
        __syncthreads();
        if (threadIdx.x < 2) tile[threadIdx.x] = carry;
    }
}
