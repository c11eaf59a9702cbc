// y = a * x over a row-major matrix. Flawed: neighbouring threads walk down a column.
extern "C" __global__ void column_walk_flawed(const float* x, float* y, float a, int rows, int columns) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int i = (thread % rows) * columns + thread / rows;
    y[i] = a * x[i];
}
extern "C" __global__ void column_walk_fixed(const float* x, float* y, float a, int rows, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = a * x[i];
}
