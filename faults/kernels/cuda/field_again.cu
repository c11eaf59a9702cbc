// One field of an array. Flawed: four bytes a thread, so that all warps together have few bytes in flight. Fixed: sixteen.
extern "C" __global__ void field_again_flawed(const float* field, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = field[i] * 2.0f;
}
extern "C" __global__ void field_again_fixed(const float4* field, float4* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 value = field[i];
    y[i] = make_float4(value.x * 2.0f, value.y * 2.0f, value.z * 2.0f, value.w * 2.0f);
}
