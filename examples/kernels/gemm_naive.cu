// One thread an element, every operand straight from global memory: four-byte loads, one FFMA for two loads.
extern "C" __global__ void gemm_naive(const float* __restrict__ a, const float* __restrict__ b, float* c, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n || column >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum = fmaf(a[row * n + k], b[k * n + column], sum);
    c[row * n + column] = sum;
}
