// The mean over the eight neighbours of each node of a graph, 64 features a node, a warp a node. The forms differ in the
// labels. Flawed: labels at random, so that neighbours lie anywhere in a table larger than L2. Fixed: the 128 nodes of a
// community have neighbouring labels, and one block serves them.
__device__ __forceinline__ void average(const float2* feature, const int* neighbour, const int* place, float2* mean) {
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    for (int part = 0; part < 4; part++) {
        int node = blockIdx.x * 128 + part * 32 + warp;
        int mine = neighbour[node * 8 + (lane & 7)];
        float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll
        for (int k = 0; k < 8; k++) {
            float2 value = feature[(long long)__shfl_sync(0xffffffffu, mine, k) * 32 + lane];
            sum.x += value.x;
            sum.y += value.y;
        }
        mean[(long long)place[node] * 32 + lane] = make_float2(sum.x * 0.125f, sum.y * 0.125f);
    }
}
extern "C" __global__ void __launch_bounds__(1024, 2) graph_neighbours_flawed(const float2* __restrict__ feature, const int* __restrict__ neighbour, const int* __restrict__ place, float2* __restrict__ mean) {
    average(feature, neighbour, place, mean);
}
extern "C" __global__ void __launch_bounds__(1024, 2) graph_neighbours_fixed(const float2* __restrict__ feature, const int* __restrict__ neighbour, const int* __restrict__ place, float2* __restrict__ mean) {
    average(feature, neighbour, place, mean);
}
