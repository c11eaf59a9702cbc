// Eight independent chains of fused multiply-adds a thread: nothing but FP32 arithmetic.
extern "C" __global__ void multiply_add_flawed(const float* x, float* y, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value[8];
#pragma unroll
    for (int k = 0; k < 8; k++) value[k] = x[i] + k;
#pragma unroll 4
    for (int step = 0; step < steps; step++)
#pragma unroll
        for (int k = 0; k < 8; k++) value[k] = value[k] * 0.984375f + 0.25f;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; k++) sum += value[k];
    y[i] = sum;
}
