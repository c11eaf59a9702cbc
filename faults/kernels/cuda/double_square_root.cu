// A stencil of three with a square root. Flawed: the double functions and constants on float data.
extern "C" __global__ void double_square_root_flawed(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    float left = x[i - 1], middle = x[i], right = x[i + 1];
    y[i] = sqrt(left * left + 1.0) * 0.25 + sqrt(middle * middle + 2.0) * 0.5 + sqrt(right * right + 1.0) * 0.25;
}
extern "C" __global__ void double_square_root_fixed(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    float left = x[i - 1], middle = x[i], right = x[i + 1];
    y[i] = sqrtf(left * left + 1.0f) * 0.25f + sqrtf(middle * middle + 2.0f) * 0.5f + sqrtf(right * right + 1.0f) * 0.25f;
}
