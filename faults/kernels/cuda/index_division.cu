// A 6-dimensional permuting copy whose strides keep the order. Flawed: 64-bit division and remainder for each dimension of
// each element. Fixed: the flat 32-bit index.
extern "C" __global__ void index_division_flawed(const float* x, float* y, long long* size, int n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long rest = i, target = 0, stride = 1;
    for (int d = 0; d < 6; d++) {
        long long index = rest % size[d];
        rest = rest / size[d];
        target += index * stride;
        stride *= size[d];
    }
    y[target] = x[i] * 2.0f;
}
extern "C" __global__ void index_division_fixed(const float* x, float* y, long long* size, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = x[i] * 2.0f;
}
