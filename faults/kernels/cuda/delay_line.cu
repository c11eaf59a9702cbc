// An echo with three taps for each of many channels; a thread keeps the last 32 outputs of its channel. Flawed: in an array
// with an index known only at run time, which lives in local memory. Cured: the loop is unrolled over the whole ring, so
// that each place has a register.
extern "C" __global__ void delay_line_flawed(const float* __restrict__ x, float* __restrict__ y, int channels, int steps) {
    int channel = blockIdx.x * 128 + threadIdx.x;
    float ring[32];
#pragma unroll
    for (int k = 0; k < 32; k++) ring[k] = 0.0f;
#pragma unroll 1
    for (int first = 0; first < steps; first += 8) {
        float input[8];
#pragma unroll
        for (int k = 0; k < 8; k++) input[k] = x[(long long)(first + k) * channels + channel];
#pragma unroll
        for (int k = 0; k < 8; k++) {
            int head = first + k;
            float value = input[k] + 0.5f * ring[(head - 7) & 31] - 0.25f * ring[(head - 13) & 31] +
                          0.125f * ring[(head - 30) & 31];
            ring[head & 31] = value;
            y[(long long)head * channels + channel] = value;
        }
    }
}
extern "C" __global__ void delay_line_cured(const float* __restrict__ x, float* __restrict__ y, int channels, int steps) {
    int channel = blockIdx.x * 128 + threadIdx.x;
    float ring[32];
#pragma unroll
    for (int k = 0; k < 32; k++) ring[k] = 0.0f;
#pragma unroll 1
    for (int first = 0; first < steps; first += 32) {
#pragma unroll
        for (int part = 0; part < 32; part += 8) {
            float input[8];
#pragma unroll
            for (int k = 0; k < 8; k++) input[k] = x[(long long)(first + part + k) * channels + channel];
#pragma unroll
            for (int k = 0; k < 8; k++) {
                int head = part + k;
                float value = input[k] + 0.5f * ring[(head - 7) & 31] - 0.25f * ring[(head - 13) & 31] +
                              0.125f * ring[(head - 30) & 31];
                ring[head & 31] = value;
                y[(long long)(first + head) * channels + channel] = value;
            }
        }
    }
}
