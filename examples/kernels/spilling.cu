// Ninety-six accumulators where a block of 1024 threads leaves 64 registers: the rest goes to local memory.
extern "C" __global__ void __launch_bounds__(1024) spilling(const float* __restrict__ in, float* out, int n) {
    float sums[96];
#pragma unroll
    for (int i = 0; i < 96; ++i) sums[i] = in[i * n + threadIdx.x];
#pragma unroll 1
    for (int k = 1; k < n; ++k) {
        float x = in[k];
#pragma unroll
        for (int i = 0; i < 96; ++i) sums[i] = fmaf(sums[i], x, sums[(i + 1) % 96]);
    }
#pragma unroll
    for (int i = 0; i < 96; ++i) out[i * n + threadIdx.x] = sums[i];
}
