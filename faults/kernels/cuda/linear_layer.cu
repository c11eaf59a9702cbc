// Y = X W^T in bfloat16, tokens x inputs times outputs x inputs, 128 x 128 tiles, 8 x 8 values a thread, on the FP32 units.
__device__ __forceinline__ unsigned short narrow(float f) {
    unsigned short h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
extern "C" __global__ void __launch_bounds__(256, 2) linear_layer_flawed(const unsigned short* x, const unsigned short* w, unsigned short* y, int inputs, int outputs) {
    __shared__ float left[16][128], right[16][128];
    int column = (threadIdx.x & 15) * 4, row = (threadIdx.x >> 4) * 4, mine = threadIdx.x & 127;
    int first_row = blockIdx.y * 128, first_column = blockIdx.x * 128;
    bool loads_left = threadIdx.x < 128;
    const unsigned short* source = loads_left ? x + (long long)(first_row + mine) * inputs : w + (long long)(first_column + mine) * inputs;
    float(*target)[128] = loads_left ? left : right;
    float sum[8][8] = {};
    for (int k = 0; k < inputs; k += 16) {
        uint4 p = *(const uint4*)(source + k), q = *(const uint4*)(source + k + 8);
        unsigned pair[8] = {p.x, p.y, p.z, p.w, q.x, q.y, q.z, q.w};
        __syncthreads();
#pragma unroll
        for (int j = 0; j < 8; j++) {
            target[2 * j][mine] = __uint_as_float(pair[j] << 16);
            target[2 * j + 1][mine] = __uint_as_float(pair[j] & 0xffff0000u);
        }
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < 16; kk++) {
            float4 l = *(const float4*)&left[kk][row], m = *(const float4*)&left[kk][row + 64];
            float4 r = *(const float4*)&right[kk][column], s = *(const float4*)&right[kk][column + 64];
            float ls[8] = {l.x, l.y, l.z, l.w, m.x, m.y, m.z, m.w}, rs[8] = {r.x, r.y, r.z, r.w, s.x, s.y, s.z, s.w};
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 8; j++) sum[i][j] += ls[i] * rs[j];
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            ushort4 four = make_ushort4(narrow(sum[i][j]), narrow(sum[i][j + 1]), narrow(sum[i][j + 2]), narrow(sum[i][j + 3]));
            int at_row = first_row + row + (i & 3) + (i >> 2) * 64, at_column = first_column + column + j * 16;
            *(ushort4*)(y + (long long)at_row * outputs + at_column) = four;
        }
}
