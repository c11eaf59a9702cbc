// The velocity that point vortices (x, y, strength) give to many particles. Flawed: two literals without an f, and so a
// division in double precision for each pair. Fixed: all of it in single precision.
struct Single {
    static __device__ __forceinline__ float pull(float strength, float square) {
        return __fdividef(0.15915494f * strength, square + 1e-3f);
    }
};
struct Mixed {
    static __device__ __forceinline__ float pull(float strength, float square) {
        return 0.15915494 * strength / (square + 1e-3);
    }
};
template <class Precision>
__device__ __forceinline__ void stir(const float2* particle, const float4* vortex, float2* velocity, int vortices) {
    __shared__ float4 tile[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    float2 here = particle[i];
    float u = 0.0f, v = 0.0f;
    for (int first = 0; first < vortices; first += 256) {
        tile[threadIdx.x] = vortex[first + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < 256; k++) {
            float4 source = tile[k];
            float dx = here.x - source.x, dy = here.y - source.y;
            float pull = Precision::pull(source.z, dx * dx + dy * dy);
            u -= pull * dy;
            v += pull * dx;
        }
        __syncthreads();
    }
    velocity[i] = make_float2(u, v);
}
extern "C" __global__ void vortex_pairs_flawed(const float2* particle, const float4* vortex, float2* velocity, int vortices) {
    stir<Mixed>(particle, vortex, velocity, vortices);
}
extern "C" __global__ void vortex_pairs_fixed(const float2* particle, const float4* vortex, float2* velocity, int vortices) {
    stir<Single>(particle, vortex, velocity, vortices);
}
