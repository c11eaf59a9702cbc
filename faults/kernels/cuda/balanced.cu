// Streams through memory and computes about as long as the stream takes: nothing is wasted.
extern "C" __global__ void balanced_flawed(const float4* x, float4* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = x[i];
#pragma unroll
    for (int round = 0; round < 36; round++) {
        v.x = v.x * 0.984375f + 0.25f;
        v.y = v.y * 0.984375f + 0.25f;
        v.z = v.z * 0.984375f + 0.25f;
        v.w = v.w * 0.984375f + 0.25f;
    }
    y[i] = v;
}
