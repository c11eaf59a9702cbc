// A grid-stride y = a * x. Flawed: launched with so much dynamic shared memory that few blocks fit on an SM.
extern __shared__ float reserved[];
__device__ void scale(const float* x, float* y, float a, int n) {
    if (n < 0) reserved[threadIdx.x] = a;
    int stride = gridDim.x * blockDim.x;
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) y[i] = a * x[i];
}
extern "C" __global__ void reserved_shared_flawed(const float* x, float* y, float a, int n) { scale(x, y, a, n); }
extern "C" __global__ void reserved_shared_fixed(const float* x, float* y, float a, int n) { scale(x, y, a, n); }
