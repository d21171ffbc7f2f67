// 128 x 128 tiles through shared memory, 8 x 8 results a thread, 16-byte loads. 256 threads a block.
constexpr int TILE = 128, DEPTH = 8, PART = 8;

extern "C" __global__ void __launch_bounds__(256)
gemm_tiled(const float* __restrict__ a, const float* __restrict__ b, float* c, int n) {
    __shared__ float left[DEPTH][TILE + 4];
    __shared__ float right[DEPTH][TILE];
    int thread = threadIdx.x;
    int row = (thread / 16) * PART, column = (thread % 16) * PART;
    const float* from_a = a + (size_t)blockIdx.y * TILE * n;
    const float* from_b = b + (size_t)blockIdx.x * TILE;
    float sums[PART][PART] = {};
#pragma unroll 1
    for (int k = 0; k < n; k += DEPTH) {
        int i = thread / 2, j = (thread % 2) * 4;
        float4 x = *reinterpret_cast<const float4*>(from_a + (size_t)i * n + k + j);
        left[j][i] = x.x; left[j + 1][i] = x.y; left[j + 2][i] = x.z; left[j + 3][i] = x.w;
        int p = thread / 32, q = (thread % 32) * 4;
        *reinterpret_cast<float4*>(&right[p][q]) = *reinterpret_cast<const float4*>(from_b + (size_t)(k + p) * n + q);
        __syncthreads();
#pragma unroll
        for (int d = 0; d < DEPTH; ++d) {
            float x[PART], y[PART];
#pragma unroll
            for (int i = 0; i < PART; i += 4) {
                *reinterpret_cast<float4*>(x + i) = *reinterpret_cast<float4*>(&left[d][row + i]);
                *reinterpret_cast<float4*>(y + i) = *reinterpret_cast<float4*>(&right[d][column + i]);
            }
#pragma unroll
            for (int i = 0; i < PART; ++i)
#pragma unroll
                for (int j = 0; j < PART; ++j) sums[i][j] = fmaf(x[i], y[j], sums[i][j]);
        }
        __syncthreads();
    }
    float* to = c + (size_t)(blockIdx.y * TILE + row) * n + blockIdx.x * TILE + column;
#pragma unroll
    for (int i = 0; i < PART; ++i)
#pragma unroll
        for (int j = 0; j < PART; j += 4)
            *reinterpret_cast<float4*>(to + (size_t)i * n + j) =
                make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
}
