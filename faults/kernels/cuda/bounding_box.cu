// The smallest and the largest coordinate of many points. Flawed: six atomics on one sector for each group of four points.
// Fixed: for each block, which reduces the points of many groups first.
struct Box { int low[3], high[3]; };
__device__ __forceinline__ void include(Box& box, int axis, int4 v) {
    box.low[axis] = min(box.low[axis], min(min(v.x, v.y), min(v.z, v.w)));
    box.high[axis] = max(box.high[axis], max(max(v.x, v.y), max(v.z, v.w)));
}
__device__ __forceinline__ Box empty() {
    const int most = 0x7fffffff;
    return {{most, most, most}, {-most, -most, -most}};
}
extern "C" __global__ void bounding_box_flawed(const int4* x, const int4* y, const int4* z, int* corners, int groups) {
    int at = blockIdx.x * 256 + threadIdx.x;
    Box box = empty();
    include(box, 0, x[at]);
    include(box, 1, y[at]);
    include(box, 2, z[at]);
    for (int axis = 0; axis < 3; axis++) {
        atomicMin(&corners[axis], box.low[axis]);
        atomicMax(&corners[3 + axis], box.high[axis]);
    }
}
extern "C" __global__ void bounding_box_fixed(const int4* x, const int4* y, const int4* z, int* corners, int groups) {
    __shared__ int part[8][6];
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    Box box = empty();
#pragma unroll 2
    for (int at = blockIdx.x * 256 + threadIdx.x; at < groups; at += gridDim.x * 256) {
        int4 p = x[at], q = y[at], r = z[at];
        include(box, 0, p);
        include(box, 1, q);
        include(box, 2, r);
    }
    for (int axis = 0; axis < 3; axis++) {
        int low = __reduce_min_sync(0xffffffffu, box.low[axis]), high = __reduce_max_sync(0xffffffffu, box.high[axis]);
        if (lane == 0) {
            part[warp][axis] = low;
            part[warp][3 + axis] = high;
        }
    }
    __syncthreads();
    if (threadIdx.x < 6) {
        int value = part[0][threadIdx.x];
        for (int w = 1; w < 8; w++)
            value = threadIdx.x < 3 ? min(value, part[w][threadIdx.x]) : max(value, part[w][threadIdx.x]);
        if (threadIdx.x < 3) atomicMin(&corners[threadIdx.x], value);
        else atomicMax(&corners[threadIdx.x], value);
    }
}
