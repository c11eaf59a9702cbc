// A polynomial hash of the words of each column, modulo the prime 2^31 - 1, four columns a thread. Flawed: a 64-bit remainder
// by a value known only at run time. Fixed: the prime's own form, a mask, a shift and an addition.
struct Remainder {
    static __device__ __forceinline__ unsigned step(unsigned hash, unsigned word, unsigned base, unsigned prime) {
        return (unsigned)(((unsigned long long)hash * base + word) % prime);
    }
};
struct Mersenne {
    static __device__ __forceinline__ unsigned step(unsigned hash, unsigned word, unsigned base, unsigned) {
        unsigned long long value = (unsigned long long)hash * base + word;
        unsigned folded = (unsigned)(value & 0x7fffffffu) + (unsigned)(value >> 31);
        return folded >= 0x7fffffffu ? folded - 0x7fffffffu : folded;
    }
};
template <class Modulo>
__device__ __forceinline__ void hash_columns(const uint4* __restrict__ x, uint4* __restrict__ y, int quads, int rows, unsigned base, unsigned prime) {
    int at = blockIdx.x * 128 + threadIdx.x;
    uint4 hash = make_uint4(0, 0, 0, 0);
#pragma unroll 4
    for (int row = 0; row < rows; row++) {
        uint4 word = x[(long long)row * quads + at];
        hash.x = Modulo::step(hash.x, word.x, base, prime);
        hash.y = Modulo::step(hash.y, word.y, base, prime);
        hash.z = Modulo::step(hash.z, word.z, base, prime);
        hash.w = Modulo::step(hash.w, word.w, base, prime);
    }
    y[at] = hash;
}
extern "C" __global__ void rolling_hash_flawed(const uint4* x, uint4* y, int quads, int rows, unsigned base, unsigned prime) {
    hash_columns<Remainder>(x, y, quads, rows, base, prime);
}
extern "C" __global__ void rolling_hash_fixed(const uint4* x, uint4* y, int quads, int rows, unsigned base, unsigned prime) {
    hash_columns<Mersenne>(x, y, quads, rows, base, prime);
}
