// C = A B in half precision, n x n, 64 x 64 tiles, 4 x 4 values a thread, on the FP32 units.
__device__ __forceinline__ float widen(unsigned short h) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
__device__ __forceinline__ unsigned short narrow(float f) {
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
extern "C" __global__ void simt_matmul_flawed(const unsigned short* a, const unsigned short* b, unsigned short* c, int n) {
    __shared__ float left[16][68], right[16][64];
    int column = (threadIdx.x & 15) * 4, row = (threadIdx.x >> 4) * 4;
    int first_row = blockIdx.y * 64, first_column = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int k = 0; k < n; k += 16) {
        for (int part = 0; part < 4; part++) {
            int e = part * 256 + threadIdx.x;
            left[e & 15][e >> 4] = widen(a[(first_row + (e >> 4)) * n + k + (e & 15)]);
            right[e >> 6][e & 63] = widen(b[(k + (e >> 6)) * n + first_column + (e & 63)]);
        }
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < 16; kk++) {
            float4 l = *(const float4*)&left[kk][row], r = *(const float4*)&right[kk][column];
            float ls[4] = {l.x, l.y, l.z, l.w}, rs[4] = {r.x, r.y, r.z, r.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] += ls[i] * rs[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) c[(first_row + row + i) * n + first_column + column + j] = narrow(sum[i][j]);
}
