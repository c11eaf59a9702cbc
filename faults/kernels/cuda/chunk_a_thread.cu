// A soft limiter over a long signal. Flawed: a thread takes 32 neighbouring samples, as a CPU thread would. Fixed: the lanes
// of a warp take neighbouring quads.
__device__ __forceinline__ float limited(float v) { return v * (1.25f - 0.25f * v * v); }
extern "C" __global__ void chunk_a_thread_flawed(const float* __restrict__ x, float* __restrict__ y) {
    long long first = (long long)(blockIdx.x * 256 + threadIdx.x) * 32;
#pragma unroll 4
    for (int k = 0; k < 32; k++) y[first + k] = limited(x[first + k]);
}
extern "C" __global__ void chunk_a_thread_fixed(const float4* __restrict__ x, float4* __restrict__ y) {
    int first = blockIdx.x * 2048 + threadIdx.x;
#pragma unroll 4
    for (int k = 0; k < 8; k++) {
        float4 v = x[first + k * 256];
        y[first + k * 256] = make_float4(limited(v.x), limited(v.y), limited(v.z), limited(v.w));
    }
}
