// Each warp sums the words of a chain of 128-byte nodes. Flawed: a node names the next one, so that each load waits for the
// one before. Fixed: a list names the nodes, and eight loads are in flight.
extern "C" __global__ void linked_nodes_flawed(const unsigned* node, const int* list, unsigned* y, int nodes, int steps) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    unsigned current = list[warp * steps], sum = 0;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        unsigned word = node[(unsigned long long)current * 32 + lane];
        sum += word;
        current = __shfl_sync(0xffffffffu, word, 31);
    }
    y[warp * 32 + lane] = sum;
}
extern "C" __global__ void linked_nodes_fixed(const unsigned* node, const int* list, unsigned* y, int nodes, int steps) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    unsigned sum = 0;
#pragma unroll 1
    for (int step = 0; step < steps; step += 32) {
        int mine = list[warp * steps + step + lane];
#pragma unroll 8
        for (int k = 0; k < 32; k++) {
            unsigned current = __shfl_sync(0xffffffffu, mine, k);
            sum += node[(unsigned long long)current * 32 + lane];
        }
    }
    y[warp * 32 + lane] = sum;
}
