// C = A B^T on the tensor cores of Hopper: one warp group, a 64 x 64 tile, wgmma out of shared memory, 64 deep a stage.
// A is m x k and B n x k, row by row, all sizes multiples of 64. Compiled and read here; not run by any test.
#include <cstdint>

using half = uint16_t;  // only moved here, never computed with

constexpr int TILE = 64, CORE = 64;  // halves in a core matrix: 8 rows of 16 bytes

// Core matrices lie one behind the other along k (128 bytes), rows of them 1 KiB apart; no swizzle.
__device__ uint64_t descriptor(const half* at) {
    uint64_t address = static_cast<uint64_t>(__cvta_generic_to_shared(at));
    return (address & 0x3FFFF) >> 4 | uint64_t(128 >> 4) << 16 | uint64_t(1024 >> 4) << 32;
}

__device__ void stage(half* to, const half* from, int pitch) {
#pragma unroll
    for (int turn = 0; turn < TILE * TILE / 8 / 128; ++turn) {
        int chunk = turn * 128 + threadIdx.x, row = chunk / 8, core = chunk % 8;
        *reinterpret_cast<uint4*>(to + (row / 8 * 8 + core) * CORE + row % 8 * 8) =
            *reinterpret_cast<const uint4*>(from + (size_t)row * pitch + core * 8);
    }
}

__device__ void multiply(float (&d)[32], uint64_t a, uint64_t b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23,"
        " %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
          "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
          "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
          "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b));
}

extern "C" __global__ void __launch_bounds__(128)
gemm_wgmma(const half* __restrict__ a, const half* __restrict__ b, float* __restrict__ c, int n, int k) {
    __shared__ alignas(128) half left[TILE * TILE], right[TILE * TILE];
    const half* rows = a + (size_t)blockIdx.y * TILE * k;
    const half* columns = b + (size_t)blockIdx.x * TILE * k;
    float d[32] = {};
#pragma unroll 1
    for (int first = 0; first < k; first += TILE) {
        stage(left, rows + first, k);
        stage(right, columns + first, k);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int step = 0; step < TILE / 16; ++step)
            multiply(d, descriptor(left + step * 2 * CORE), descriptor(right + step * 2 * CORE));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
    }
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    float* out = c + ((size_t)blockIdx.y * TILE + row) * n + blockIdx.x * TILE + column;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        *reinterpret_cast<float2*>(out + j * 8) = make_float2(d[4 * j], d[4 * j + 1]);
        *reinterpret_cast<float2*>(out + (size_t)8 * n + j * 8) = make_float2(d[4 * j + 2], d[4 * j + 3]);
    }
}
