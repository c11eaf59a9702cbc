// Calibrates readings of four channels; one in 30000 is out of range and needs the solution of a 12 x 12 system. Flawed: a
// thread solves its own system in registers, which every thread then has to reserve. Fixed: the warp solves it in shared
// memory, one column a lane.
#define SIZE 12
__device__ __forceinline__ float4 calibrated(float4 v) {
    return make_float4(v.x * 1.5f + 0.25f, v.y * 1.5f + 0.25f, v.z * 1.5f + 0.25f, v.w * 1.5f + 0.25f);
}
__device__ __forceinline__ bool out_of_range(float4 v, float limit) { return v.x + v.y + v.z + v.w > limit; }
extern "C" __global__ void __launch_bounds__(256) rare_solver_flawed(const float4* x, float4* y, float limit) {
    int at = blockIdx.x * 256 + threadIdx.x;
    float4 v = x[at], result = calibrated(v);
    if (out_of_range(v, limit)) {
        float channel[4] = {v.x, v.y, v.z, v.w}, a[SIZE][SIZE], b[SIZE];
#pragma unroll
        for (int i = 0; i < SIZE; i++) {
            b[i] = channel[i & 3];
#pragma unroll
            for (int j = 0; j < SIZE; j++) a[i][j] = channel[(i + j) & 3] * (1.0f / (1 + i + j)) + (i == j ? 8.0f : 0.0f);
        }
#pragma unroll
        for (int k = 0; k < SIZE; k++) {
            float inverse = 1.0f / a[k][k];
#pragma unroll
            for (int i = k + 1; i < SIZE; i++) {
                float factor = a[i][k] * inverse;
#pragma unroll
                for (int j = k; j < SIZE; j++) a[i][j] -= factor * a[k][j];
                b[i] -= factor * b[k];
            }
        }
#pragma unroll
        for (int k = SIZE - 1; k >= 0; k--) {
            b[k] /= a[k][k];
#pragma unroll
            for (int i = 0; i < k; i++) b[i] -= a[i][k] * b[k];
        }
        result = make_float4(b[0], b[1], b[2], b[3]);
    }
    y[at] = result;
}
__device__ __forceinline__ float4 solved_by_warp(float4 v, float (*a)[SIZE + 1]) {
    int lane = threadIdx.x & 31, column = min(lane, SIZE);
#pragma unroll 1
    for (int i = 0; i < SIZE; i++) {
        int which = (column == SIZE ? i : i + column) & 3;
        float channel = which == 0 ? v.x : which == 1 ? v.y : which == 2 ? v.z : v.w;
        a[i][column] = column == SIZE ? channel : channel * (1.0f / (1 + i + column)) + (i == column ? 8.0f : 0.0f);
    }
    __syncwarp();
#pragma unroll 1
    for (int k = 0; k < SIZE; k++) {
        float inverse = 1.0f / a[k][k];
#pragma unroll 1
        for (int i = k + 1; i < SIZE; i++) {
            float changed = a[i][column] - a[i][k] * inverse * a[k][column];
            __syncwarp();
            a[i][column] = changed;
        }
        __syncwarp();
    }
#pragma unroll 1
    for (int k = SIZE - 1; k >= 0; k--) {
        float value = a[k][SIZE] / a[k][k];
        __syncwarp();
        if (lane < k) a[lane][SIZE] -= a[lane][k] * value;
        if (lane == k) a[k][SIZE] = value;
        __syncwarp();
    }
    return make_float4(a[0][SIZE], a[1][SIZE], a[2][SIZE], a[3][SIZE]);
}
extern "C" __global__ void __launch_bounds__(256, 8) rare_solver_fixed(const float4* x, float4* y, float limit) {
    __shared__ float system[8][SIZE][SIZE + 1];
    int at = blockIdx.x * 256 + threadIdx.x;
    float4 v = x[at];
    y[at] = calibrated(v);
    unsigned waiting = __ballot_sync(0xffffffffu, out_of_range(v, limit));
    while (waiting) {
        int source = (at & ~31) + __ffs(waiting) - 1;
        waiting &= waiting - 1;
        float4 solution = solved_by_warp(x[source], system[threadIdx.x >> 5]);
        __syncwarp();
        if (at == source) y[at] = solution;
    }
}
