// The Mandelbrot set, a block an SM. Flawed: a block draws 32 neighbouring rows, and the bands in the middle take longest.
// Fixed: a block draws every 132nd row. The roundings are written out, so that both forms count alike.
__device__ __forceinline__ void draw(int* y, int row, int width, int height, int most) {
    float b = fmaf((float)row, 2.4f / height, -1.2f);
    for (int column = threadIdx.x; column < width; column += 1024) {
        float a = fmaf((float)column, 2.6f / width, -2.0f), u = 0.0f, v = 0.0f;
        int count = 0;
        for (; count < most; count++) {
            float uu = __fmul_rn(u, u), vv = __fmul_rn(v, v);
            if (__fadd_rn(uu, vv) > 4.0f) break;
            v = fmaf(__fadd_rn(u, u), v, b);
            u = __fadd_rn(__fsub_rn(uu, vv), a);
        }
        y[row * width + column] = count;
    }
}
extern "C" __global__ void __launch_bounds__(1024) fractal_bands_flawed(int* y, int width, int height, int most) {
    int rows = height / gridDim.x;
    for (int row = 0; row < rows; row++) draw(y, blockIdx.x * rows + row, width, height, most);
}
extern "C" __global__ void __launch_bounds__(1024) fractal_bands_fixed(int* y, int width, int height, int most) {
    for (int row = blockIdx.x; row < height; row += gridDim.x) draw(y, row, width, height, most);
}
