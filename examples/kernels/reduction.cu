// A grid-stride sum: shuffles inside a warp, one barrier between warps, one atomic a block.
extern "C" __global__ void __launch_bounds__(256) reduction(const float* __restrict__ in, float* out, int n) {
    __shared__ float parts[8];
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    for (int offset = 16; offset; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; ++i) sum += parts[i];
        atomicAdd(out, sum);
    }
}
