// Four phasors a thread, turned step by step: nothing but FP32 arithmetic.
extern "C" __global__ void phasor_bank_flawed(const float4* x, float4* y, float cosine, float sine, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 start = x[i];
    float real[4] = {start.x, start.y, start.z, start.w}, imaginary[4] = {}, sum[4] = {};
#pragma unroll 4
    for (int step = 0; step < steps; step++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            float turned = real[k] * cosine - imaginary[k] * sine;
            imaginary[k] = real[k] * sine + imaginary[k] * cosine;
            real[k] = turned;
            sum[k] += turned * turned;
        }
    y[i] = make_float4(sum[0], sum[1], sum[2], sum[3]);
}
