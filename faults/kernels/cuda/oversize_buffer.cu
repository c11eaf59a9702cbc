// Scales rows through a staging buffer. Flawed: the buffer has 40 kB where 1 kB is used. Fixed: it has 1 kB.
template <int SIZE>
__device__ __forceinline__ void stage(const float* x, float* y, int rows) {
    __shared__ float buffer[SIZE];
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        long long at = (long long)row * 64 + threadIdx.x;
        buffer[threadIdx.x] = x[at];
        __syncthreads();
        y[at] = buffer[63 - threadIdx.x] * 2.0f;
        __syncthreads();
    }
}
extern "C" __global__ void oversize_buffer_flawed(const float* x, float* y, int rows) { stage<10240>(x, y, rows); }
extern "C" __global__ void oversize_buffer_fixed(const float* x, float* y, int rows) { stage<256>(x, y, rows); }
