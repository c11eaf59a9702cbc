// Reads one field of eight. Flawed: an array of structures of 32 bytes. Fixed: one array for the field.
extern "C" __global__ void struct_field_flawed(const float* structs, const float* field, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = structs[i * 8 + 3] * 2.0f;
}
extern "C" __global__ void struct_field_fixed(const float* structs, const float* field, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = field[i] * 2.0f;
}
