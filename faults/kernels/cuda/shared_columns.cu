// Sums the rows of 32 x 32 tiles, many times over. Flawed: the lanes of a warp read one bank.
template <int PITCH>
__device__ void sum_rows(const float* x, float* y, int rounds) {
    __shared__ float tile[32 * PITCH];
    int column = threadIdx.x & 31, first = threadIdx.x >> 5;
    const float* source = x + blockIdx.x * 1024;
    for (int row = first; row < 32; row += 8) tile[row * PITCH + column] = source[row * 32 + column];
    __syncthreads();
    float sum = 0.0f;
#pragma unroll 4
    for (int round = 0; round < rounds; round++) sum += tile[column * PITCH + ((first + round) & 31)];
    y[blockIdx.x * 256 + threadIdx.x] = sum;
}
extern "C" __global__ void shared_columns_flawed(const float* x, float* y, int rounds) { sum_rows<32>(x, y, rounds); }
extern "C" __global__ void shared_columns_fixed(const float* x, float* y, int rounds) { sum_rows<33>(x, y, rounds); }
