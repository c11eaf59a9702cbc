// Double precision on purpose: the data is double too.
extern "C" __global__ void true_double_flawed(const double* x, double* y, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double a = x[i], b = a + 1.0, c = a + 2.0, d = a + 3.0;
    for (int step = 0; step < steps; step++) {
        a = a * 0.984375 + 0.25;
        b = b * 0.96875 + 0.25;
        c = c * 0.9375 + 0.25;
        d = d * 0.875 + 0.25;
    }
    y[i] = a + b + c + d;
}
