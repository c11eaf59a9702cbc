// y = x transposed, n x n. Flawed: neighbouring threads write down a column.
extern "C" __global__ void naive_transpose_flawed(const float* x, float* y, int n) {
    int column = blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) y[column * n + first + k] = x[(first + k) * n + column];
}
extern "C" __global__ void naive_transpose_fixed(const float* x, float* y, int n) {
    __shared__ float tile[32][33];
    int column = blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = x[(first + k) * n + column];
    __syncthreads();
    int row = blockIdx.y * 32 + threadIdx.x, out = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) y[(out + k) * n + row] = tile[threadIdx.x][threadIdx.y + k];
}
