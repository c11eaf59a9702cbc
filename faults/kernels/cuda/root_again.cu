// A stencil of three with a square root. Flawed: one value a thread. Fixed: four, loaded and stored together.
__device__ __forceinline__ float blend(float left, float middle, float right) {
    return sqrtf(left * left + 1.0f) * 0.25f + sqrtf(middle * middle + 2.0f) * 0.5f + sqrtf(right * right + 1.0f) * 0.25f;
}
extern "C" __global__ void root_again_flawed(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    y[i] = blend(x[i - 1], x[i], x[i + 1]);
}
extern "C" __global__ void root_again_fixed(const float* x, float* y, int n) {
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    float4 value = *(const float4*)(x + i);
    float left = i > 0 ? x[i - 1] : 0.0f, right = i + 4 < n ? x[i + 4] : 0.0f;
    float first = i > 0 ? blend(left, value.x, value.y) : 0.0f;
    float last = i + 4 < n ? blend(value.z, value.w, right) : 0.0f;
    *(float4*)(y + i) = make_float4(first, blend(value.x, value.y, value.z), blend(value.y, value.z, value.w), last);
}
