// A float recurrence. Flawed: the constants lack the f, so that the arithmetic is in double precision.
extern "C" __global__ void double_literal_flawed(const float* x, float* y, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
    for (int round = 0; round < rounds; round++) value = value * 0.984375 + 0.25;
    y[i] = value;
}
extern "C" __global__ void double_literal_fixed(const float* x, float* y, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
    for (int round = 0; round < rounds; round++) value = value * 0.984375f + 0.25f;
    y[i] = value;
}
