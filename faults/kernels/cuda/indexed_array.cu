// A table of 32 values a thread, visited by an index known only at run time. Flawed: the table is a local array, which
// lives in local memory. Fixed: it lives in shared memory, one column a thread.
extern "C" __global__ void indexed_array_flawed(const float* x, float* y, int rounds) {
    int i = blockIdx.x * 128 + threadIdx.x;
    float table[32];
#pragma unroll
    for (int k = 0; k < 32; k++) table[k] = x[i] + k;
    int at = threadIdx.x & 31;
    for (int round = 0; round < rounds; round++) {
        table[at] = table[at] * 0.5f + table[(at + 7) & 31] * 0.25f;
        at = (at * 5 + round) & 31;
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 32; k++) sum += table[k];
    y[i] = sum;
}
extern "C" __global__ void indexed_array_fixed(const float* x, float* y, int rounds) {
    __shared__ float tables[32 * 128];
    int i = blockIdx.x * 128 + threadIdx.x;
    float* table = tables + threadIdx.x;
    for (int k = 0; k < 32; k++) table[k * 128] = x[i] + k;
    int at = threadIdx.x & 31;
    for (int round = 0; round < rounds; round++) {
        table[at * 128] = table[at * 128] * 0.5f + table[((at + 7) & 31) * 128] * 0.25f;
        at = (at * 5 + round) & 31;
    }
    float sum = 0.0f;
    for (int k = 0; k < 32; k++) sum += table[k * 128];
    y[i] = sum;
}
