// Exponential smoothing of rows of 64 samples, forwards and then backwards, one row a thread, in a tile of 128 rows. Flawed:
// the rows lie 64 words apart, so that the lanes of a warp meet in one bank. Fixed: 65 words apart.
template <int PITCH>
__device__ __forceinline__ void smooth(const float* __restrict__ x, float* __restrict__ y) {
    __shared__ float tile[128 * PITCH];
    long long first = (long long)blockIdx.x * 128 * 64;
    int column = threadIdx.x & 63, half = threadIdx.x >> 6;
#pragma unroll 16
    for (int k = 0; k < 64; k++) tile[(2 * k + half) * PITCH + column] = x[first + k * 128 + threadIdx.x];
    __syncthreads();
    float* row = tile + threadIdx.x * PITCH;
    float state = row[0];
#pragma unroll 16
    for (int k = 0; k < 64; k++) {
        state += 0.3f * (row[k] - state);
        row[k] = state;
    }
#pragma unroll 16
    for (int k = 63; k >= 0; k--) {
        state += 0.3f * (row[k] - state);
        row[k] = state;
    }
    __syncthreads();
#pragma unroll 16
    for (int k = 0; k < 64; k++) y[first + k * 128 + threadIdx.x] = tile[(2 * k + half) * PITCH + column];
}
extern "C" __global__ void recursive_filter_flawed(const float* x, float* y) { smooth<64>(x, y); }
extern "C" __global__ void recursive_filter_fixed(const float* x, float* y) { smooth<65>(x, y); }
