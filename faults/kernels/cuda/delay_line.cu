// An echo with six taps for each of many channels; a thread keeps the last 64 outputs of its channel. Flawed: in an array
// with an index known only at run time, which lives in local memory. Fixed: the loop is unrolled over the whole ring, so
// that each place has a register.
__device__ __forceinline__ float echo(float input, const float* ring, int head) {
    return input + 0.5f * ring[(head - 7) & 63] - 0.25f * ring[(head - 13) & 63] + 0.125f * ring[(head - 22) & 63] -
           0.25f * ring[(head - 37) & 63] + 0.125f * ring[(head - 51) & 63] - 0.125f * ring[(head - 62) & 63];
}
template <int UNROLLED>
__device__ __forceinline__ void play(const float* __restrict__ x, float* __restrict__ y, int channels, int steps) {
    int channel = blockIdx.x * 128 + threadIdx.x;
    float ring[64];
#pragma unroll
    for (int k = 0; k < 64; k++) ring[k] = 0.0f;
#pragma unroll 1
    for (int first = 0; first < steps; first += UNROLLED) {
        int start = UNROLLED == 64 ? 0 : first;
#pragma unroll
        for (int part = 0; part < UNROLLED; part += 8) {
            float input[8];
#pragma unroll
            for (int k = 0; k < 8; k++) input[k] = x[(long long)(first + part + k) * channels + channel];
#pragma unroll
            for (int k = 0; k < 8; k++) {
                float value = echo(input[k], ring, start + part + k);
                ring[(start + part + k) & 63] = value;
                y[(long long)(first + part + k) * channels + channel] = value;
            }
        }
    }
}
extern "C" __global__ void delay_line_flawed(const float* x, float* y, int channels, int steps) {
    play<8>(x, y, channels, steps);
}
extern "C" __global__ void delay_line_fixed(const float* x, float* y, int channels, int steps) {
    play<64>(x, y, channels, steps);
}
